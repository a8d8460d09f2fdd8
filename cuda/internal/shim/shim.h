/* What zz_table.c and shim.c share, and what Go calls. */
#define HIDDEN __attribute__((visibility("hidden")))

struct gnb_entry {
  const char *name;
  void **call;
};

extern const struct gnb_entry gnb_table[];
extern const int gnb_table_len;

int gnb_absent(const char *name);

/* Loads the driver, fills the table and initialises it. The result is cuInit's, or -1 where the
   library does not load; why then holds the reason. */
int gnb_load(const char *library, char *why, int size);

/* Puts another implementation under a call, in place of the driver; 1 where there is no such call. */
int gnb_set(const char *name, void *call);

/* The call last asked for that the driver does not have, or null. */
const char *gnb_last_absent(void);
