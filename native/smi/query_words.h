/* Words for the values of several rows. The last one is also for values beyond it. */
#ifndef SN_QUERY_WORDS_H
#define SN_QUERY_WORDS_H

extern const char *const query_on_off[];  /* only 1 is on */
extern const char *const query_enabled[]; /* all but 0 is */
extern const char *const query_yes_no[];
extern const char *const query_states[];

#endif
