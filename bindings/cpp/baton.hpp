/*
 * baton.hpp: leader election for C++17 and newer, header only, on libbaton.
 *
 *     baton_cpp::store store{"file:/var/lib/myapp"};
 *     auto &election = store.election("nightly-report");
 *     election.run([](baton_cpp::lead &lead) {
 *             while (lead.leads())
 *                     do_a_little_work(lead.term());
 *     });
 *
 * With C++20 the body may take a std::stop_token as well. A store has one thread, which takes
 * events and watches the deadlines of leads. C never calls C++, so no exception crosses C. A
 * leadership is never given back while a lead is open: the end of a lead means that its work has
 * ended. The namespace is baton_cpp because `struct baton` is a name of the C library.
 */
#ifndef BATON_HPP
#define BATON_HPP

#include <algorithm>
#include <atomic>
#include <baton.h>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <stop_token>
#endif

namespace baton_cpp
{

/* Objects differ between C++17 and C++20. A program that mixes both doesn't link, instead of going
 * wrong. */
#if __cplusplus >= 202002L
inline namespace cpp20
#else
inline namespace cpp17
#endif
{

using std::chrono::milliseconds;

/* An error of the library: a BATON_E code and a sentence. */
class error : public std::runtime_error
{
public:
	error(int code, const std::string &text) : std::runtime_error(text), code_(code)
	{
	}
	int code() const noexcept
	{
		return code_;
	}
	/* The code in one word: "timeout". */
	const char *name() const noexcept
	{
		return baton_code_name(code_);
	}

private:
	int code_;
};

namespace detail
{

/* A time for C, where -1 means no limit. */
inline std::int64_t to_ms(std::optional<milliseconds> time)
{
	return time ? time->count() : -1;
}

inline int checked(int result, const baton_error *err = nullptr)
{
	if (result >= 0)
		return result;
	throw error(result, err != nullptr && err->code == result && err->text[0] != '\0'
				    ? err->text
				    : baton_strerror(result));
}

/* Text for C. Refuses a zero byte: C would stop there and name something else. */
inline const char *c_text(const std::string &text, const char *what)
{
	if (text.find('\0') != std::string::npos)
		throw error(BATON_E_INVALID,
			    std::string(what) + " has a zero byte: text ends there in C");
	return text.c_str();
}

inline const char *c_text(const std::optional<std::string> &text, const char *what)
{
	return text ? c_text(*text, what) : nullptr;
}

/* What the store's thread knows of an open lead. */
struct watched {
	baton_context *context;
	std::uint64_t term;
	bool is_told = false;
#if __cplusplus >= 202002L
	std::stop_source stop;
#endif
};

/* What the waiters of one election look at. Guarded by the mutex of its handle. */
struct seat {
	baton_election *c;
	bool is_over = false; /* stopped, and not started again */
	int n_inside = 0;     /* threads in acquire() and run() */
	std::set<watched *> leads;
};

/* A handle with its thread. Elections and leads share the handle, so the handle outlives them. */
class handle
{
public:
	handle(const char *url, const baton_options *options) : pid_(getpid())
	{
		baton_error err{};

		checked(baton_open(url, options, &b, &err), &err);
		wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (wake_fd_ < 0) {
			baton_close(b);
			throw error(BATON_E_SYSTEM, "eventfd: no descriptor can be had");
		}
		std::lock_guard<std::mutex> guard(all().mutex);
		all().handles.insert(this);
	}

	handle(const handle &) = delete;
	handle &operator=(const handle &) = delete;

	~handle()
	{
		bool is_ours = pid_ == getpid();

		if (is_ours) {
			std::lock_guard<std::mutex> guard(all().mutex);
			all().handles.erase(this);
		}
		ends_ = true;
		if (thread_.joinable()) {
			if (is_ours) {
				wake();
				thread_.join();
			} else {
				thread_.detach(); /* the thread is the parent's */
			}
		}
		close(wake_fd_);
		baton_close(b);
	}

	void start_thread()
	{
		std::lock_guard<std::mutex> guard(mutex);
		if (!thread_.joinable())
			thread_ = std::thread([this] { take_events(); });
	}

	void add(baton_election *c, seat *s)
	{
		std::lock_guard<std::mutex> guard(mutex);
		seats_[c] = s;
	}

	void forget(baton_election *c)
	{
		std::lock_guard<std::mutex> guard(mutex);
		seats_.erase(c);
	}

	void watch(seat &s, watched &w)
	{
		std::lock_guard<std::mutex> guard(mutex);
		s.leads.insert(&w);
		wake();
	}

	/* Leaves the context. Its descriptor is no longer watched when it is closed. */
	void leave(seat &s, watched &w)
	{
		if (pid_ != getpid())
			return; /* the work is the parent's */
		{
			std::lock_guard<std::mutex> guard(mutex);
			s.leads.erase(&w);
			wake();
		}
		/* poll(2) may still watch the number; the thread asks again before it reports. */
		baton_leave(w.context);
		changed.notify_all();
	}

	bool is_forked() const
	{
		return pid_ != getpid();
	}

	baton *b = nullptr;
	std::mutex mutex;
	std::condition_variable changed; /* something happened in an election, or a lead was left */

private:
	/* All open handles. They are stopped if the program exits without closing them. */
	struct registry {
		std::mutex mutex;
		std::set<handle *> handles;
	};

	static registry &all()
	{
		/* Never destroyed: the exit hook runs after static objects are gone. */
		static registry *r = [] {
			std::atexit(stop_all);
			return new registry;
		}();
		return *r;
	}

	/* Stops all handles within one second. Leaderships without open work are given back. */
	static void stop_all()
	{
		auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
		std::lock_guard<std::mutex> guard(all().mutex);

		for (int round = 0; round < 2; round++)
			for (handle *h : all().handles) {
				if (h->pid_ != getpid())
					continue;
				std::vector<baton_election *> found;
				{
					std::lock_guard<std::mutex> inner(h->mutex);
					for (auto &pair : h->seats_) {
						pair.second->is_over = true;
						found.push_back(pair.first);
					}
					h->changed.notify_all();
				}
				for (baton_election *c : found) {
					auto left = std::chrono::duration_cast<milliseconds>(
						until - std::chrono::steady_clock::now());
					baton_election_stop(
						c, round == 0 ? 0
							      : std::max<std::int64_t>(
									0, left.count()));
				}
			}
	}

	void wake() const
	{
		std::uint64_t one = 1;

		(void)!write(wake_fd_, &one, sizeof(one));
	}

	/* The thread: events, and leads whose deadline has passed. */
	void take_events()
	{
		std::vector<pollfd> fds;

		while (!ends_) {
			fds.assign({{baton_fd(b), POLLIN, 0}, {wake_fd_, POLLIN, 0}});
			{
				std::lock_guard<std::mutex> guard(mutex);
				for (auto &pair : seats_)
					for (watched *w : pair.second->leads)
						if (!w->is_told)
							fds.push_back(
								{baton_context_fd(w->context),
								 POLLIN, 0});
			}
			poll(fds.data(), fds.size(), -1);
			if (fds[1].revents != 0) {
				std::uint64_t n;
				(void)!read(wake_fd_, &n, sizeof(n));
			}
			baton_event event;
			while (!ends_ && baton_wait(b, 0, &event) > 0) {
				/* The library waits for open contexts. Without one there is no
				 * work. */
				if (event.kind == BATON_EVENT_LOST)
					baton_drained(event.election, event.term);
				baton_event_done(b, event.token);
			}
			tell_lost();
			changed.notify_all();
		}
	}

	void tell_lost()
	{
#if __cplusplus >= 202002L
		std::vector<std::stop_source> lost;
#endif
		{
			std::lock_guard<std::mutex> guard(mutex);
			for (auto &pair : seats_)
				for (watched *w : pair.second->leads)
					if (!w->is_told && !baton_context_is_leader(w->context)) {
						w->is_told = true;
#if __cplusplus >= 202002L
						lost.push_back(w->stop);
#endif
					}
		}
#if __cplusplus >= 202002L
		for (auto &source : lost) /* callbacks run here, without the mutex */
			source.request_stop();
#endif
	}

	pid_t pid_;
	int wake_fd_ = -1;
	std::atomic<bool> ends_{false};
	std::map<baton_election *, seat *> seats_;
	std::thread thread_;
};

} // namespace detail

/* Work that is bound to one leadership. Its end says that the work has ended. */
class lead
{
public:
	lead(lead &&) = default;
	lead &operator=(lead &&) = delete;
	~lead()
	{
		leave();
	}

	/* Whether this leadership holds now, by the clock. False after leave(). */
	bool leads() const noexcept
	{
		return w_ != nullptr && baton_context_is_leader(w_->context);
	}
	explicit operator bool() const noexcept
	{
		return leads();
	}
	std::uint64_t term() const noexcept
	{
		return term_;
	}
	milliseconds time_left() const noexcept
	{
		return milliseconds(w_ == nullptr ? 0 : baton_context_time_left_ms(w_->context));
	}
	/* Sleeps until the leadership is lost (true) or the time has passed (false). */
	bool wait(std::optional<milliseconds> time = std::nullopt) const
	{
		return w_ == nullptr || baton_context_wait(w_->context, detail::to_ms(time));
	}
#if __cplusplus >= 202002L
	/* The loss stops this token, perhaps late. Only leads() is exact. */
	std::stop_token lost() const
	{
		return w_ == nullptr ? std::stop_token() : w_->stop.get_token();
	}
#endif
	/* Says that the work has ended, before the end of the scope. */
	void leave()
	{
		if (w_ != nullptr)
			handle_->leave(*seat_, *w_);
		w_.reset();
	}

private:
	friend class election;
	lead(std::shared_ptr<detail::handle> h, std::shared_ptr<detail::seat> s, baton_context *context)
		: handle_(std::move(h)), seat_(std::move(s)), w_(new detail::watched),
		  term_(baton_context_term(context))
	{
		w_->context = context;
		w_->term = term_;
		handle_->watch(*seat_, *w_);
	}

	std::shared_ptr<detail::handle> handle_;
	std::shared_ptr<detail::seat> seat_;
	std::unique_ptr<detail::watched> w_;
	std::uint64_t term_;
};

struct election_options {
	std::optional<std::string> metadata;
	std::int32_t priority = 0;
	milliseconds preempt{0};
	bool observe_only = false;
	bool manual = false;
	bool release_on_stop = true;
	bool check_health = true;
	bool step_down_unhealthy = true;
	std::uint32_t min_score_permille = 800;
	milliseconds work_timeout{0};
};

/* This process' candidate in one election. store::election() makes it; it lives as long as the
 * store. */
class election
{
public:
	election(const election &) = delete;
	election &operator=(const election &) = delete;

	bool leads() const noexcept
	{
		return baton_is_leader(seat_->c);
	}
	std::uint64_t term() const noexcept
	{
		return baton_term(seat_->c);
	}
	milliseconds time_left() const noexcept
	{
		return milliseconds(baton_time_left_ms(seat_->c));
	}
	std::string name() const
	{
		return baton_election_name(seat_->c);
	}
	/* For the other functions of baton.h. It lives as long as the store is open. */
	baton_election *handle() const noexcept
	{
		return seat_->c;
	}
	baton_status status() const
	{
		baton_status status{};
		detail::checked(baton_get_status(seat_->c, &status));
		return status;
	}

	/* Contends from now on. Does no I/O. */
	void start()
	{
		{
			std::lock_guard<std::mutex> guard(handle_->mutex);
			detail::checked(baton_election_start(seat_->c));
			seat_->is_over = false;
		}
		handle_->start_thread();
	}
	/* Steps down, waits for open leads, gives the claim back. Throws BATON_E_TIMEOUT if that
	 * takes longer than time; the stop then goes on in the background. */
	void stop(std::optional<milliseconds> time = std::nullopt)
	{
		if (handle_->is_forked())
			detail::checked(BATON_E_FORKED);
		{
			std::lock_guard<std::mutex> guard(handle_->mutex);
			seat_->is_over = true;
		}
		int result = baton_election_stop(seat_->c, 0);
		handle_->changed.notify_all();
		if (time != milliseconds(0))
			detail::checked(baton_election_stop(seat_->c, detail::to_ms(time)));
		else if (result != BATON_E_TIMEOUT)
			detail::checked(result);
	}
	/* Tries to become leader now. If that fails, obstacle says why (BATON_OBSTACLE_...). */
	bool try_acquire(milliseconds time, int *obstacle = nullptr)
	{
		return detail::checked(baton_try_acquire(seat_->c, time.count(), obstacle)) > 0;
	}
	void resign(milliseconds quiet = milliseconds(0))
	{
		detail::checked(baton_resign(seat_->c, quiet.count()));
	}
	void transfer(const std::string &candidate)
	{
		baton_error err{};
		detail::checked(baton_transfer(seat_->c, detail::c_text(candidate, "the candidate"), &err),
				&err);
	}
	/* From 0 to 1000. No value leaves the metadata. */
	void report_health(std::uint32_t score_permille,
			   const std::optional<std::string> &metadata = std::nullopt)
	{
		detail::checked(baton_report_health(seat_->c, score_permille,
						    detail::c_text(metadata, "the metadata")));
	}
	void alive()
	{
		baton_alive(seat_->c);
	}

	/* Binds work to the present leadership. Throws BATON_E_NOT_LEADER if there is none. */
	lead enter()
	{
		baton_context *context = nullptr;
		baton_error err{};
		detail::checked(baton_enter(seat_->c, &context, &err), &err);
		handle_->start_thread();
		return lead(handle_, seat_, context);
	}

	/* Starts the election if it is not started, and waits until this candidate leads. No value:
	 * the election was stopped, or the time has passed. */
	std::optional<lead> acquire(std::optional<milliseconds> time = std::nullopt)
	{
		inside here(*this);

		for (auto until = from_now(time); wait_to_lead(until);)
			if (baton_context *context = enter_now())
				return lead(handle_, seat_, context);
		return std::nullopt;
	}

	/*
	 * Calls body(lead), or with C++20 body(lead, stop_token), on this thread whenever this
	 * candidate is elected, until the election is stopped. If body returns while the candidate
	 * leads, the candidate resigns and contends again. If body throws, the election steps down
	 * and the exception is thrown from here.
	 */
	template <class Body> void run(Body &&body)
	{
		inside here(*this);

		try {
			while (wait_to_lead(std::nullopt)) {
				baton_context *context = enter_now();

				if (context == nullptr)
					continue;
				lead l(handle_, seat_, context);
				call(body, l);
				l.leave();
				if (baton_term(seat_->c) == l.term())
					baton_resign(seat_->c, 0);
			}
		} catch (...) {
			stop(milliseconds(0));
			throw;
		}
	}

private:
	friend class store;
	election(std::shared_ptr<detail::handle> h, baton_election *c)
		: handle_(std::move(h)), seat_(new detail::seat)
	{
		seat_->c = c;
		handle_->add(c, seat_.get());
	}

	/* Marks a thread that is inside: the store waits for the thread before it is destroyed. */
	class inside
	{
	public:
		explicit inside(election &e) : handle_(e.handle_), seat_(e.seat_)
		{
			std::lock_guard<std::mutex> guard(handle_->mutex);
			seat_->n_inside++;
		}
		~inside()
		{
			std::lock_guard<std::mutex> guard(handle_->mutex);
			seat_->n_inside--;
			handle_->changed.notify_all();
		}
		inside(const inside &) = delete;
		inside &operator=(const inside &) = delete;

	private:
		std::shared_ptr<detail::handle> handle_;
		std::shared_ptr<detail::seat> seat_;
	};

	using instant = std::chrono::steady_clock::time_point;

	static std::optional<instant> from_now(std::optional<milliseconds> time)
	{
		if (!time)
			return std::nullopt;
		return std::chrono::steady_clock::now() + *time;
	}

	/* Starts if not started. False: the election was stopped, or the time has passed. */
	bool wait_to_lead(std::optional<instant> until)
	{
		start_unless_over();
		std::unique_lock<std::mutex> guard(handle_->mutex);
		auto is_time = [this] { return seat_->is_over || leads(); };
		if (!until)
			handle_->changed.wait(guard, is_time);
		else if (!handle_->changed.wait_until(guard, *until, is_time))
			return false;
		return !seat_->is_over;
	}

	/* NULL: the leadership was lost meanwhile. */
	baton_context *enter_now()
	{
		baton_context *context = nullptr;
		baton_error err{};
		int result = baton_enter(seat_->c, &context, &err);

		if (result != BATON_E_NOT_LEADER)
			detail::checked(result, &err);
		return context;
	}

	/* One step: a start must not follow a stop that another thread has asked for. */
	void start_unless_over()
	{
		{
			std::lock_guard<std::mutex> guard(handle_->mutex);
			if (seat_->is_over || status().state != BATON_STATE_STOPPED)
				return;
			detail::checked(baton_election_start(seat_->c));
		}
		handle_->start_thread();
	}

	template <class Body> static void call(Body &body, lead &l)
	{
#if __cplusplus >= 202002L
		if constexpr (std::is_invocable_v<Body &, lead &, std::stop_token>)
			body(l, l.lost());
		else
#endif
			body(l);
	}

	std::shared_ptr<detail::handle> handle_;
	std::shared_ptr<detail::seat> seat_;
};

struct store_options {
	std::optional<std::string> id;
	std::optional<std::string> address;
	milliseconds lease{15000};
	milliseconds renew{0};
	milliseconds grace{0};
	milliseconds retry{0};
	bool outlive = false;
};

/* A handle on the store that the URL names. Opening does no I/O. */
class store
{
public:
	explicit store(const std::string &url, const store_options &wanted = {})
	{
		baton_options o;

		baton_options_init(&o);
		o.id = detail::c_text(wanted.id, "the id");
		o.address = detail::c_text(wanted.address, "the address");
		o.lease_ms = static_cast<std::uint64_t>(wanted.lease.count());
		o.renew_ms = static_cast<std::uint64_t>(wanted.renew.count());
		o.grace_ms = static_cast<std::uint64_t>(wanted.grace.count());
		o.retry_ms = static_cast<std::uint64_t>(wanted.retry.count());
		o.outlive = wanted.outlive;
		handle_ = std::make_shared<detail::handle>(detail::c_text(url, "the URL"), &o);
	}
	store(store &&) = default;
	store &operator=(store &&) = delete;
	/* Stops all elections. Waits until bodies have ended; for the store at most one lease. */
	~store()
	{
		close();
	}

	std::string id() const
	{
		return baton_id(handle_->b);
	}
	/* For the other functions of baton.h, but those that take events, free or close. */
	baton *handle() const noexcept
	{
		return handle_->b;
	}
	std::string promises() const
	{
		return baton_promises(handle_->b);
	}

	/* Makes a candidate in the named election. The candidate does nothing until started. */
	baton_cpp::election &election(const std::string &name, const election_options &wanted = {})
	{
		baton_election_options o;
		baton_election *c = nullptr;
		baton_error err{};

		baton_election_options_init(&o);
		o.metadata = detail::c_text(wanted.metadata, "the metadata");
		o.priority = wanted.priority;
		o.preempt_ms = static_cast<std::uint64_t>(wanted.preempt.count());
		o.observe_only = wanted.observe_only;
		o.manual = wanted.manual;
		o.release_on_stop = wanted.release_on_stop;
		o.check_health = wanted.check_health;
		o.step_down_unhealthy = wanted.step_down_unhealthy;
		o.min_score_permille = wanted.min_score_permille;
		o.work_timeout_ms = static_cast<std::uint64_t>(wanted.work_timeout.count());
		o.drain_by_hand = true;
		detail::checked(baton_election_new(handle_->b, detail::c_text(name, "the name"), &o, &c,
						   &err),
				&err);
		elections_.emplace_back(new baton_cpp::election(handle_, c));
		return *elections_.back();
	}

	/* Asks the store who leads. Blocks. */
	baton_observed observe(const std::string &name) const
	{
		baton_observed o{};
		baton_error err{};
		detail::checked(
			baton_observe(handle_->b, detail::c_text(name, "the name"), &o, &err), &err);
		return o;
	}

	/* Asks the store who contends. Blocks. */
	std::vector<baton_candidate> candidates(const std::string &name) const
	{
		std::vector<baton_candidate> found(16);
		baton_error err{};

		for (;;) {
			std::size_t n = static_cast<std::size_t>(detail::checked(
				baton_get_candidates(handle_->b, detail::c_text(name, "the name"),
						     found.data(), found.size(), &err),
				&err));
			bool is_all = n <= found.size();
			found.resize(n);
			if (is_all)
				return found;
		}
	}

	/* Stops all elections and waits for the work that is bound to leads. Objects that came from
	 * this store must not be used afterwards. Must not be called from a body: the call would
	 * wait for itself. */
	void close()
	{
		if (handle_ == nullptr)
			return;
		if (!handle_->is_forked()) {
			for (auto &e : elections_)
				e->stop(milliseconds(0));
			std::unique_lock<std::mutex> guard(handle_->mutex);
			handle_->changed.wait(guard, [this] {
				for (auto &e : elections_)
					if (!e->seat_->leads.empty() || e->seat_->n_inside > 0)
						return false;
				return true;
			});
		}
		for (auto &e : elections_)
			if (!handle_->is_forked())
				handle_->forget(e->seat_->c);
		handle_.reset(); /* with the elections: C frees them */
		elections_.clear();
	}

private:
	std::shared_ptr<detail::handle> handle_;
	std::vector<std::unique_ptr<baton_cpp::election>> elections_;
};

} // inline namespace
} // namespace baton_cpp

#endif
