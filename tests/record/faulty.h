/* faulty.h: how the suite tells the module of faulty.c what it is. */
#ifndef BATON_RECORD_FAULTY_H
#define BATON_RECORD_FAULTY_H

#define FAULTY_MODULE "BATON_FAULTY_MODULE"
#define FAULTY_AS "BATON_FAULTY_AS"

#endif
