/*
 * test_net.c: connections of base/net on loopback: bytes both ways, and each way in which one can
 * end: nobody there, hung up, nothing comes, somebody wakes us. TLS is tested with real servers
 * (tests/redis, tests/memcached).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/net/net.h"

#define SOON (clock_boot_ns() + 20 * CLOCK_NS_PER_S)

static int talks;

static int talk_ok(void *arg)
{
	(void)arg;
	talks++;
	return 0;
}

static int talk_refused(void *arg)
{
	(void)arg;
	talks++;
	return -1;
}

static int listen_on(char port[8])
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	(void)snprintf(port, 8, "%u", ntohs(address.sin_port));
	return fd;
}

static void test_both_ways(void **state)
{
	struct net n;
	char port[8], text[16];
	size_t got;
	int listener = listen_on(port);
	struct net_place place = {.host = "127.0.0.1", .port = port};

	(void)state;
	net_init(&n, "Peer");
	assert_false(net_is_sound(&n));
	n.deadline_ns = SOON;
	talks = 0;
	assert_int_equal(net_reach(&n, &place, talk_ok, NULL), 0);
	assert_int_equal(talks, 1);
	int other = accept(listener, NULL, NULL);

	assert_true(net_is_sound(&n));
	assert_int_equal(net_send(&n, "hello", 5), 0);
	assert_true(n.has_sent);
	assert_int_equal(read(other, text, sizeof(text)), 5);
	assert_memory_equal(text, "hello", 5);
	assert_int_equal(write(other, "you", 3), 3);
	assert_int_equal(net_receive(&n, text, sizeof(text), &got), 0);
	assert_int_equal(got, 3);
	assert_memory_equal(text, "you", 3);
	(void)close(other);
	assert_int_equal(net_receive(&n, text, sizeof(text), &got), -1);
	assert_int_equal(n.why, NET_UNAVAILABLE);
	assert_string_equal(n.text, "Peer has closed the connection");
	assert_false(net_is_sound(&n));
	net_done(&n);
	(void)close(listener);
}

/* Nothing comes: no failure until somebody makes one of it. And no byte is lost by a wake-up. */
static void test_waits(void **state)
{
	struct net n;
	char port[8], text[16];
	size_t got;
	int listener = listen_on(port);
	struct net_place place = {.host = "127.0.0.1", .port = port};
	int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	net_init(&n, "Peer");
	n.deadline_ns = SOON;
	assert_int_equal(net_reach(&n, &place, talk_ok, NULL), 0);
	int other = accept(listener, NULL, NULL);

	n.deadline_ns = clock_boot_ns();
	assert_int_equal(net_receive(&n, text, sizeof(text), &got), NET_NOTHING);
	assert_int_equal(net_fail_nothing(&n, NET_NOTHING, "wait for a reply"), -1);
	assert_int_equal(n.why, NET_LATE);
	assert_string_equal(n.text, "Peer does not answer in time (wait for a reply)");
	n.deadline_ns = SOON;
	n.wake = wake;
	assert_int_equal(eventfd_write(wake, 1), 0);
	assert_int_equal(net_receive(&n, text, sizeof(text), &got), NET_WOKEN);
	assert_int_equal(net_send(&n, "whole", 5), 0);
	assert_int_equal(read(other, text, sizeof(text)), 5);
	net_forget(&n);
	assert_int_equal(n.fd, -1);
	net_done(&n);
	(void)close(other);
	(void)close(listener);
	(void)close(wake);
}

static void test_nobody(void **state)
{
	struct net n;
	char port[8];
	int listener = listen_on(port);
	struct net_place place = {.host = "127.0.0.1", .port = port};

	(void)state;
	net_init(&n, "Peer");
	n.deadline_ns = SOON;
	talks = 0;
	assert_int_equal(net_reach(&n, &place, talk_refused, NULL), -1);
	assert_int_equal(talks, 1);
	(void)close(listener);
	assert_int_equal(net_reach(&n, &place, talk_ok, NULL), NET_ELSEWHERE);
	assert_int_equal(talks, 1);
	assert_int_equal(n.why, NET_UNAVAILABLE);
	assert_non_null(strstr(n.text, "can't connect to 127.0.0.1:"));
	assert_int_equal(net_open_unix(&n, "/nowhere/socket"), -1);
	assert_string_equal(n.text, "can't connect to /nowhere/socket: No such file or directory");
	net_done(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
