/* The current context of a thread: the device's number plus 1, or 0 for none. */
void fk_set_current(long context);
long fk_current(void);

/* The simulated calls, by index. */
int fk_len(void);
const char *fk_name(int i);
void *fk_call(int i);
