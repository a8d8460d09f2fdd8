/* The context that a thread has current: the number of the device and 1, or 0. */
void fk_set_current(long context);
long fk_current(void);

/* The calls that there are, by index. */
int fk_len(void);
const char *fk_name(int i);
void *fk_call(int i);
