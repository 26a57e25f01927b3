/*
 * first.h: how long the first version of each option struct was. A program may pass a struct of
 * this size or more: what it leaves out has its default. These sizes never change, and
 * tests/api/abi sees to that; a new field goes to the end of its struct and changes nothing here.
 */
#ifndef BATON_FIRST_H
#define BATON_FIRST_H

#include <baton.h>
#include <stddef.h>

#define FIRST_OPTIONS offsetof(struct baton_options, trace)
#define FIRST_ELECTION_OPTIONS offsetof(struct baton_election_options, drain_by_hand)
#define FIRST_RUN_OPTIONS offsetof(struct baton_run_options, once)

#endif
