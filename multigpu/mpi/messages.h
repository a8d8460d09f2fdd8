// Messages of MPI that are under way, for engine.go and link.go.
#include <mpi.h>
#include <stddef.h>

// gnb_group is a group of messages that are polled together.
typedef struct {
	int count, left, room;
	MPI_Request *request;
	MPI_Status *status;
	int *index;
	int *peer;   // the other rank
	int *length; // bytes that a receive must get, or -1 for a send
	int failed;  // after an error: the rank of the message, or -1
	int got;     // after an error: the bytes that came instead of wanted, or -1
	int wanted;
} gnb_group;

gnb_group *gnb_group_new(void);
void gnb_group_free(gnb_group *g);

// gnb_send and gnb_recv start the pieces of a message. They return an error code of MPI.
int gnb_send(gnb_group *g, const void *data, size_t bytes, size_t piece, int peer, int tag, MPI_Comm comm);
int gnb_recv(gnb_group *g, void *data, size_t bytes, size_t piece, int peer, int tag, MPI_Comm comm);

// gnb_poll completes messages that have arrived or left: the group's left says how many have not. It
// returns when all are complete, or when none was for so many microseconds: at 0 it looks once. With
// yields it lets other processes run between two looks. It returns an error code of MPI.
int gnb_poll(gnb_group *g, int us, int yields);

// gnb_cancel gives up the messages that are not complete. Their memory must stay.
void gnb_cancel(gnb_group *g);

// gnb_nap sleeps for so many microseconds.
void gnb_nap(int us);

MPI_Comm gnb_world(void);
int gnb_serialized(void);
// gnb_init starts MPI for calls of any thread, one at a time. Go handles the signals of faults: those handlers
// that MPI, or a library below it, replaces are set again.
int gnb_init(int *provided);
// gnb_dup duplicates MPI_COMM_WORLD, lets its errors return, and reads the largest tag.
int gnb_dup(MPI_Comm *comm, int *tags);
// gnb_local counts the ranks that share this one's memory.
int gnb_local(int *ranks);

// gnb_processors counts those of the machine: a launcher often binds a rank to a few of them.
int gnb_processors(void);
