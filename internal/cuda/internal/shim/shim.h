/* Declarations that zz_table.c and shim.c share, and the functions that Go calls. */
#define HIDDEN __attribute__((visibility("hidden")))

struct gnb_entry {
  const char *name;
  void **call;
};

extern const struct gnb_entry gnb_table[];
extern const int gnb_table_len;

int gnb_absent(const char *name);

/* Loads the driver, fills the table and calls cuInit. Returns the result of cuInit, or -1 if the
   library cannot be loaded or is not a driver; why then holds the reason. */
int gnb_load(const char *library, char *why, int size);

/* Makes a call use another implementation than the driver's. Returns 1 if the table has no such call. */
int gnb_set(const char *name, void *call);

/* Returns the name of the last call that the driver lacks, or null. */
const char *gnb_last_absent(void);
