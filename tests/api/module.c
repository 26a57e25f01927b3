/* module.c: opens a store whose driver is a module (driver.c), and prints what that says. */
#include <baton.h>
#include <stdio.h>

int main(void)
{
	struct baton_error err;
	struct baton *b;
	int code = baton_open("outside:here", NULL, &b, &err);

	printf("%d %s\n", code, err.text);
	return 0;
}
