/*
 * driver.cpp: the C++ binding, driven by lines (tests/bindings/README.md): what a scenario asks for
 * is done as a user of the binding would do it. Bodies run on threads. It must never decide anything
 * by itself: the scenarios do. Built as C++17 and as C++20.
 */
#include <baton.hpp>

#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <iostream>
#include <sstream>
#include <sys/wait.h>

using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace
{

struct skip {
	std::string why;
};

struct part {
	std::string store;
	baton_cpp::election *e;
	std::atomic<bool> finish{false};
};

std::mutex out_mutex;
std::mutex leads_mutex;
/* Never destroyed: exit() must not close what the scenario left open. */
auto &stores = *new std::map<std::string, std::unique_ptr<baton_cpp::store>>;
auto &parts = *new std::map<std::string, std::unique_ptr<part>>;
auto &leads = *new std::map<std::string, baton_cpp::lead *>; /* null: it has ended */
auto &entered = *new std::map<std::string, std::unique_ptr<baton_cpp::lead>>;
auto &threads = *new std::vector<std::thread>;
int n_leads;
int signal_pipe[2];

std::string quoted(const std::string &word)
{
	std::string text;
	char code[8];

	for (unsigned char c : word) {
		if (isalnum(c) || std::strchr("-._~:/=,?&@+", c) != nullptr) {
			text += static_cast<char>(c);
		} else {
			snprintf(code, sizeof(code), "%%%02X", c);
			text += code;
		}
	}
	return text.empty() ? "%" : text;
}

std::string unquoted(const std::string &word)
{
	std::string text;

	if (word == "%")
		return "";
	for (size_t i = 0; i < word.size(); i++) {
		if (word[i] == '%') {
			text += static_cast<char>(std::stoi(word.substr(i + 1, 2), nullptr, 16));
			i += 2;
		} else {
			text += word[i];
		}
	}
	return text;
}

void say(const std::string &first, const words &more)
{
	std::string line = first;

	for (const auto &word : more)
		line += " " + quoted(word);
	std::lock_guard<std::mutex> guard(out_mutex);
	std::cout << line << std::endl;
}

std::string now_ns()
{
	timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return std::to_string(t.tv_sec * 1000000000LL + t.tv_nsec);
}

std::string named(baton_cpp::lead *l)
{
	std::lock_guard<std::mutex> guard(leads_mutex);
	std::string name = "L" + std::to_string(++n_leads);

	leads[name] = l;
	return name;
}

/* ---- bodies ---- */

/* How the language cancels: the stop_token where there is one, else the wait that ends early. */
#if __cplusplus >= 202002L
bool is_lost(const baton_cpp::lead &l)
{
	return l.lost().stop_requested();
}
bool wait_lost(const baton_cpp::lead &l, std::chrono::milliseconds time)
{
	std::mutex m;
	std::condition_variable_any changed;
	std::unique_lock<std::mutex> guard(m);

	changed.wait_for(guard, l.lost(), time, [] { return false; });
	return l.lost().stop_requested();
}
#else
bool is_lost(const baton_cpp::lead &l)
{
	return !l.leads();
}
bool wait_lost(const baton_cpp::lead &l, std::chrono::milliseconds time)
{
	return l.wait(time);
}
#endif

void spin(const std::string &e, baton_cpp::lead &l)
{
	while (!is_lost(l)) {
		std::string t0 = now_ns();
		if (!l.leads())
			break;
		say("!", {"yes", e, std::to_string(l.term()), t0, now_ns()});
		l.wait(1ms);
	}
}

void play(const std::string &e, const std::string &mode, const std::string &name,
	  baton_cpp::lead &l, std::string &how)
{
	part &p = *parts[e];

	if (mode == "raise")
		throw std::runtime_error("the body failed");
	if (mode == "stop")
		p.e->stop(0ms);
	if (mode == "spin")
		spin(e, l);
	while (!wait_lost(l, mode == "until" ? 5ms : 3600000ms)) {
		if (mode == "until" && p.finish) {
			how = "returned";
			return;
		}
	}
	say("!", {"lost", e, name, now_ns()});
	how = "cancelled";
	if (mode == "stubborn") {
		while (!p.finish)
			std::this_thread::yield();
		how = "returned";
	}
}

void body(const std::string &e, const std::string &mode, baton_cpp::lead &l)
{
	std::string name = named(&l), how = "raised";
	auto end = [&] {
		parts[e]->finish = false;
		say("!", {"leave", e, name, how, now_ns()});
		std::lock_guard<std::mutex> guard(leads_mutex);
		leads[name] = nullptr;
	};

	say("!", {"enter", e, name, std::to_string(l.term()), now_ns()});
	try {
		play(e, mode, name, l, how);
	} catch (...) {
		end();
		throw;
	}
	end();
}

void loop(const std::string &e, const std::string &mode)
{
	try {
#if __cplusplus >= 202002L
		parts[e]->e->run([&](baton_cpp::lead &l, std::stop_token) { body(e, mode, l); });
#else
		parts[e]->e->run([&](baton_cpp::lead &l) { body(e, mode, l); });
#endif
		say("!", {"end", e, "stopped"});
	} catch (const baton_cpp::error &err) {
		say("!", {"end", e, "error", err.name(), std::to_string(err.code()), err.what()});
	} catch (const std::exception &err) {
		say("!", {"end", e, "raised", err.what()});
	}
}

/* ---- requests ---- */

std::chrono::milliseconds ms(const std::string &word)
{
	return std::chrono::milliseconds(std::stoll(word));
}

words do_open(const words &w)
{
	baton_cpp::store_options o;

	for (size_t i = 3; i < w.size(); i++) {
		auto at = w[i].find('=');
		std::string key = w[i].substr(0, at), value = w[i].substr(at + 1);

		if (key == "id")
			o.id = value;
		else if (key == "address")
			o.address = value;
		else if (key == "lease_ms")
			o.lease = ms(value);
		else if (key == "renew_ms")
			o.renew = ms(value);
		else if (key == "grace_ms")
			o.grace = ms(value);
		else if (key == "retry_ms")
			o.retry = ms(value);
		else if (key == "outlive")
			o.outlive = value == "1";
	}
	stores[w[1]] = std::make_unique<baton_cpp::store>(w[2], o);
	return {stores[w[1]]->id()};
}

words do_election(const words &w)
{
	baton_cpp::election_options o;

	for (size_t i = 4; i < w.size(); i++) {
		auto at = w[i].find('=');
		std::string key = w[i].substr(0, at), value = w[i].substr(at + 1);

		if (key == "metadata")
			o.metadata = value;
		else if (key == "priority")
			o.priority = std::stoi(value);
		else if (key == "manual")
			o.manual = value == "1";
		else if (key == "observe_only")
			o.observe_only = value == "1";
		else if (key == "release_on_stop")
			o.release_on_stop = value == "1";
		else if (key == "step_down_unhealthy")
			o.step_down_unhealthy = value == "1";
		else if (key == "preempt_ms")
			o.preempt = ms(value);
		else if (key == "work_timeout_ms")
			o.work_timeout = ms(value);
	}
	auto p = std::make_unique<part>();
	p->store = w[2];
	p->e = &stores.at(w[2])->election(w[3], o);
	parts[w[1]] = std::move(p);
	return {parts[w[1]]->e->name()};
}

words do_await(const words &w)
{
	auto l = parts.at(w[1])->e->acquire(ms(w[2]));

	if (!l)
		throw baton_cpp::error(BATON_E_TIMEOUT, "it does not lead in time");
	return {std::to_string(l->term())};
}

words do_enter(const words &w)
{
	auto l = std::make_unique<baton_cpp::lead>(parts.at(w[1])->e->enter());
	std::string name = named(l.get()), term = std::to_string(l->term());

	entered[name] = std::move(l);
	return {name, term};
}

/* An answer of a lead, or of an election if there is one of that name; 0 of a lead that is left. */
template <class L, class E> std::string ask(const std::string &name, L of_lead, E of_election)
{
	std::lock_guard<std::mutex> guard(leads_mutex);
	auto found = leads.find(name);

	if (found == leads.end())
		return std::to_string(of_election(*parts.at(name)->e));
	return found->second == nullptr ? "0" : std::to_string(of_lead(*found->second));
}

words do_lost(const words &w)
{
	std::lock_guard<std::mutex> guard(leads_mutex);
	baton_cpp::lead *l = leads.at(w[1]);

	return {l == nullptr || is_lost(*l) ? "1" : "0"};
}

words do_awaitlost(const words &w)
{
	if (!wait_lost(*entered.at(w[1]), ms(w[2])))
		throw baton_cpp::error(BATON_E_TIMEOUT, "it is not lost");
	return {now_ns()};
}

words do_status(const words &w)
{
	baton_status s = parts.at(w[1])->e->status();

	return {baton_state_name(s.state), s.leader, std::to_string(s.term)};
}

words do_fork(const words &w)
{
	int ends[2];
	char text[64];

	if (pipe2(ends, O_CLOEXEC) != 0)
		throw std::runtime_error("pipe");
	pid_t pid = fork();
	if (pid == 0) {
		part &p = *parts.at(w[1]);
		std::string said = "nothing";
		int n = p.e->leads();

		for (auto &pair : leads)
			n += pair.second != nullptr && pair.second->leads();
		try {
			p.e->start();
		} catch (const baton_cpp::error &err) {
			said = err.name();
		}
		said = std::to_string(n) + " " + said;
		_exit(write(ends[1], said.data(), said.size()) < 0);
	}
	close(ends[1]);
	ssize_t n = read(ends[0], text, sizeof(text));
	close(ends[0]);
	waitpid(pid, nullptr, 0);
	std::istringstream in(std::string(text, static_cast<size_t>(std::max<ssize_t>(n, 0))));
	std::string count, code;
	in >> count >> code;
	return {count, code};
}

words do_child(const words &)
{
	static FILE *child = popen("exec cat", "we"); /* holds the pipe; its pid is our newest child */
	std::ostringstream path;
	char pid[32] = "";

	path << "/proc/" << getpid() << "/task/" << getpid() << "/children";
	FILE *f = child == nullptr ? nullptr : fopen(path.str().c_str(), "re");
	if (f == nullptr || fscanf(f, "%31s", pid) != 1)
		throw std::runtime_error("there is no child");
	fclose(f);
	return {pid};
}

words do_cycle(const words &w)
{
	for (int i = 0; i < std::stoi(w[1]); i++) {
		baton_cpp::store s(w[2]);
		s.election("cycle-" + std::to_string(i % 10)).start();
	}
	return {};
}

words do_candidates(const words &w)
{
	words found;

	for (const baton_candidate &c : stores.at(w[1])->candidates(w[2]))
		found.push_back(std::string(c.id) + "=" + (c.is_leader ? "1," : "0,") +
				(c.is_healthy ? "1," : "0,") + std::to_string(c.score_permille) +
				"," + c.metadata);
	return found;
}

/* Before the answer: a store is not closed while it is used. */
words do_observe(const words &w)
{
	try {
		baton_observed o = stores.at(w[1])->observe(w[2]);
		say("!", {"observed", w[1], "leader", o.leader, std::to_string(o.term)});
	} catch (const baton_cpp::error &err) {
		say("!", {"observed", w[1], "error", err.name(), std::to_string(err.code()),
			  err.what()});
	}
	return {};
}

/* By the functions of baton.h, which this header does not repeat. */
words do_order(const words &w)
{
	baton *b = stores.at(w[1])->handle();
	const char *name = w[3].c_str();
	baton_error err{};
	int code = BATON_E_INVALID;

	if (w[2] == "resign")
		code = baton_order_resign(b, name, 0, 0, nullptr, &err);
	else if (w[2] == "transfer")
		code = baton_order_transfer(b, name, 0, w[4].c_str(), nullptr, &err);
	else if (w[2] == "pause")
		code = baton_pause(b, name, &err);
	else if (w[2] == "resume")
		code = baton_resume(b, name, &err);
	baton_cpp::detail::checked(code, &err);
	return {};
}

words do_bench(const words &w)
{
	baton_cpp::lead &l = *entered.at(w[1]);
	std::int64_t n = std::stoll(w[2]), best[2] = {INT64_MAX, INT64_MAX};

	for (int round = 0; round < 10; round++) {
		auto began = std::chrono::steady_clock::now();
		volatile bool answer = false;

		for (std::int64_t i = 0; i < n; i++)
			answer = round % 2 == 0 ? l.leads() : baton_version_number() != 0;
		(void)answer;
		std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
		best[round % 2] = std::min(best[round % 2], took.count() / n);
	}
	return {std::to_string(best[0]), std::to_string(best[1])};
}

words do_constants(const words &); /* below: a long list */

words serve(const words &w)
{
	static const std::map<std::string, words (*)(const words &)> verbs = {
		{"open", do_open},	   {"election", do_election}, {"await", do_await},
		{"enter", do_enter},	   {"lost", do_lost},	      {"awaitlost", do_awaitlost},
		{"status", do_status},	   {"fork", do_fork},	      {"child", do_child},
		{"cycle", do_cycle},	   {"constants", do_constants}, {"bench", do_bench},
		{"candidates", do_candidates}, {"observe", do_observe}, {"order", do_order}, {"gc", [](const words &) { return words(); }}};
	const std::string &verb = w[0];
	auto known = verbs.find(verb);

	if (known != verbs.end())
		return known->second(w);
	if (verb == "hello")
		return {"cpp", baton_version(), std::to_string(baton_version_number())};
	if (verb == "promises")
		return {stores.at(w[1])->promises()};
	if (verb == "condition")
		return {baton_condition_name(
			baton_election_condition(parts.at(w[1])->e->handle(), nullptr))};
	if (verb == "alive")
		parts.at(w[1])->e->alive();
	else if (verb == "start")
		parts.at(w[1])->e->start();
	else if (verb == "run")
		threads.emplace_back(loop, w[1], w[2]);
	else if (verb == "finish")
		parts.at(w[1])->finish = true;
	else if (verb == "leave") {
		std::lock_guard<std::mutex> guard(leads_mutex);
		leads[w[1]] = nullptr;
		entered.erase(w[1]);
	} else if (verb == "leads")
		return {ask(w[1], [](auto &l) { return l.leads(); },
			    [](auto &e) { return e.leads(); })};
	else if (verb == "term")
		return {ask(w[1], [](auto &l) { return l.term(); },
			    [](auto &e) { return e.term(); })};
	else if (verb == "left")
		return {ask(w[1], [](auto &l) { return l.time_left().count(); },
			    [](auto &e) { return e.time_left().count(); })};
	else if (verb == "try")
		return {parts.at(w[1])->e->try_acquire(ms(w[2])) ? "1" : "0"};
	else if (verb == "resign")
		parts.at(w[1])->e->resign(ms(w[2]));
	else if (verb == "transfer")
		parts.at(w[1])->e->transfer(w[2]);
	else if (verb == "health")
		parts.at(w[1])->e->report_health(
			static_cast<std::uint32_t>(std::stoul(w[2])),
			w.size() > 3 ? std::optional<std::string>(w[3]) : std::nullopt);
	else if (verb == "stop")
		parts.at(w[1])->e->stop(ms(w[2]));
	else if (verb == "close")
		stores.at(w[1])->close();
	else if (verb == "drop")
		throw skip{"leaving a scope closes"};
	else if (verb == "heard")
		throw skip{"the binding has no handlers"};
	else if (verb == "lose")
		throw skip{"leaving a scope leaves"};
	else
		throw std::runtime_error("unknown request " + verb);
	return {};
}

#define C(name) #name "=" + std::to_string(name)

/* They are the header's own: what is told is that all of them can be used. */
words do_constants(const words &)
{
	return {C(BATON_OK), C(BATON_E_INVALID), C(BATON_E_TIMING), C(BATON_E_URL),
		C(BATON_E_NO_DRIVER), C(BATON_E_MEMORY), C(BATON_E_SYSTEM), C(BATON_E_NOT_STARTED),
		C(BATON_E_NOT_LEADER), C(BATON_E_TIMEOUT), C(BATON_E_EXISTS),
		C(BATON_E_UNAVAILABLE), C(BATON_E_DENIED), C(BATON_E_CORRUPT),
		C(BATON_E_UNSUPPORTED), C(BATON_E_NO_CANDIDATE), C(BATON_E_STALE),
		C(BATON_E_FORKED), C(BATON_E_BUSY), C(BATON_E_DUPLICATE_ID), C(BATON_EVENT_BECAME),
		C(BATON_EVENT_LOST), C(BATON_EVENT_CHANGED), C(BATON_EVENT_ERROR),
		C(BATON_EVENT_STOPPED), C(BATON_EVENT_WAITS), C(BATON_EVENT_RENEWED),
		C(BATON_REASON_NONE), C(BATON_REASON_EXPIRED), C(BATON_REASON_REFUSED),
		C(BATON_REASON_SUPERSEDED), C(BATON_REASON_GONE), C(BATON_REASON_STALLED),
		C(BATON_REASON_STOPPED), C(BATON_REASON_RESIGNED), C(BATON_REASON_ORDERED),
		C(BATON_REASON_TRANSFERRED), C(BATON_REASON_UNHEALTHY), C(BATON_REASON_PAUSED)};
}

void handle_line(const std::string &line)
{
	std::istringstream in(line);
	words w;

	for (std::string word; in >> word;)
		w.push_back(unquoted(word));
	if (w[0] == "exit") /* without closing anything: threads go on until the end */
		std::exit(std::stoi(w[1]));
	try {
		say("ok", serve(w));
	} catch (const skip &s) {
		say("skip", {s.why});
	} catch (const baton_cpp::error &err) {
		say("error", {err.name(), std::to_string(err.code()), err.what()});
	} catch (const std::exception &err) {
		say("error", {"other", "0", err.what()});
	}
}

void on_signal(int)
{
	(void)!write(signal_pipe[1], "x", 1);
}

/* Requests until the input ends; false: SIGINT. */
bool read_requests()
{
	std::string text;
	char data[4096];

	for (;;) {
		pollfd fds[2] = {{0, POLLIN, 0}, {signal_pipe[0], POLLIN, 0}};

		poll(fds, 2, -1);
		if (fds[1].revents != 0)
			return false;
		ssize_t n = fds[0].revents != 0 ? read(0, data, sizeof(data)) : 0;
		if (n <= 0 && fds[0].revents != 0)
			return true;
		text.append(data, static_cast<size_t>(n));
		for (size_t end; (end = text.find('\n')) != std::string::npos;) {
			handle_line(text.substr(0, end));
			text.erase(0, end + 1);
		}
	}
}

} // namespace

int main()
{
	struct sigaction action = {};

	action.sa_handler = on_signal;
	if (pipe2(signal_pipe, O_CLOEXEC) != 0 || sigaction(SIGINT, &action, nullptr) != 0)
		return 1;
	bool is_end = read_requests();
	for (auto &pair : parts)
		pair.second->finish = true;
	for (auto &pair : stores)
		pair.second->close();
	for (auto &thread : threads)
		thread.join();
	return is_end ? 0 : 130;
}
