/* messages.h: the core's reasons, as words for people and as the public API's numbers. */
#ifndef BATON_TEXT_H
#define BATON_TEXT_H

#include <stdint.h>

struct baton_error;

/* "the deadline has passed" */
const char *text_of_why(uint8_t why);
/* "expired": one word, for the history */
const char *text_word_of_why(uint8_t why);
/* What an error event says. */
const char *text_of_error(int code, uint8_t why);
/* Says that no descriptor or thread is left; returns the code. */
int text_fail_limits(struct baton_error *err);
/* BATON_REASON_... of a lost leadership */
int reason_of_why(uint8_t why);
/* BATON_E_... of an error */
int code_of_why(uint8_t why);

/* BATON_OBSTACLE_...: why a campaign that was asked for was not won. */
int obstacle_of_why(uint8_t why);

#endif
