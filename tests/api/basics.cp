/*
 * basics.cp: a program from outside, in C++11: includes all public headers, and uses the basics by
 * what C++ has for it. Built like basics.c.
 */
#include <baton-memory.h>
#include <baton-store.h>
#include <baton.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

using handle = std::unique_ptr<struct baton, decltype(&baton_close)>;

handle open(const std::string &url)
{
	struct baton_error err;
	struct baton *b = nullptr;

	if (baton_open(url.c_str(), nullptr, &b, &err) != BATON_OK)
		throw std::runtime_error(err.text);
	return handle(b, baton_close);
}

void check(bool ok, const char *what)
{
	if (!ok)
		throw std::logic_error(what);
}

void lead(struct baton *b)
{
	struct baton_election *e = nullptr;
	struct baton_election_options options;
	struct baton_error err;
	int events = 0;

	baton_election_options_init(&options);
	options.handler = [](void *arg, const struct baton_event *) { ++*static_cast<int *>(arg); };
	options.handler_arg = &events;
	if (baton_election_new(b, "basics++", &options, &e, &err) != BATON_OK)
		throw std::runtime_error(err.text);
	check(baton_election_start(e) == BATON_OK, "starts");
	check(baton_try_acquire(e, 10000, NULL) == 1, "leads");
	check(baton_run_if_leader(
		      e,
		      [](struct baton_context *ctx, void *) -> int {
			      return baton_context_term(ctx) > 0 ? 5 : 6;
		      },
		      nullptr) == 5,
	      "runs");
	baton_election_free(e);
	check(events >= 2, "the handler was called");
}

} // namespace

int main(int argc, char **argv)
{
	try {
		check(argc == 2, "takes a URL");
		handle b = open(argv[1]);

		lead(b.get());
		std::cout << "ok\n";
		return 0;
	} catch (const std::exception &e) {
		std::cerr << "not so: " << e.what() << '\n';
		return 1;
	}
}
