//go:build mpi

#include "messages.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

gnb_group *gnb_group_new(void) { return calloc(1, sizeof(gnb_group)); }

void gnb_group_free(gnb_group *g) {
	free(g->request);
	free(g->status);
	free(g->index);
	free(g->peer);
	free(g->length);
	free(g);
}

static int grow(gnb_group *g) {
	if (g->count < g->room) return MPI_SUCCESS;
	int room = g->room ? 2 * g->room : 16;
	void *request = realloc(g->request, room * sizeof *g->request);
	if (request) g->request = request;
	void *status = realloc(g->status, room * sizeof *g->status);
	if (status) g->status = status;
	void *index = realloc(g->index, room * sizeof *g->index);
	if (index) g->index = index;
	void *peer = realloc(g->peer, room * sizeof *g->peer);
	if (peer) g->peer = peer;
	void *length = realloc(g->length, room * sizeof *g->length);
	if (length) g->length = length;
	if (!request || !status || !index || !peer || !length) return MPI_ERR_NO_MEM;
	g->room = room;
	return MPI_SUCCESS;
}

static int start(gnb_group *g, char *data, size_t bytes, size_t piece, int peer, int tag, MPI_Comm comm, int isSend) {
	while (bytes > 0) {
		int n = bytes < piece ? bytes : piece;
		int rc = grow(g);
		if (rc == MPI_SUCCESS)
			rc = isSend ? MPI_Isend(data, n, MPI_BYTE, peer, tag, comm, &g->request[g->count])
				    : MPI_Irecv(data, n, MPI_BYTE, peer, tag, comm, &g->request[g->count]);
		if (rc != MPI_SUCCESS) {
			g->failed = peer;
			g->got = -1;
			return rc;
		}
		g->peer[g->count] = peer;
		g->length[g->count] = isSend ? -1 : n;
		g->count++;
		g->left++;
		data += n;
		bytes -= n;
	}
	return MPI_SUCCESS;
}

int gnb_send(gnb_group *g, const void *data, size_t bytes, size_t piece, int peer, int tag, MPI_Comm comm) {
	return start(g, (char *)data, bytes, piece, peer, tag, comm, 1);
}

int gnb_recv(gnb_group *g, void *data, size_t bytes, size_t piece, int peer, int tag, MPI_Comm comm) {
	return start(g, data, bytes, piece, peer, tag, comm, 0);
}

static int test(gnb_group *g) {
	if (g->left > 0) {
		int done = 0;
		g->failed = g->got = -1;
		int rc = MPI_Testsome(g->count, g->request, &done, g->index, g->status);
		if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) return rc;
		if (done == MPI_UNDEFINED) done = g->left;
		for (int i = 0; i < done; i++) {
			int k = g->index[i], got = 0;
			if (rc == MPI_ERR_IN_STATUS && g->status[i].MPI_ERROR != MPI_SUCCESS) {
				g->failed = g->peer[k];
				return g->status[i].MPI_ERROR;
			}
			if (g->length[k] < 0) continue;
			MPI_Get_count(&g->status[i], MPI_BYTE, &got);
			if (got != g->length[k]) {
				g->failed = g->peer[k];
				g->got = got;
				g->wanted = g->length[k];
				return MPI_ERR_TRUNCATE;
			}
		}
		g->left -= done;
	}
	if (g->left == 0) g->count = 0;
	return MPI_SUCCESS;
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int gnb_poll(gnb_group *g, int us, int yields) {
	int64_t end = us ? now() + 1000 * (int64_t)us : 0;
	for (;;) {
		int left = g->left;
		int rc = test(g);
		if (rc != MPI_SUCCESS || g->left == 0 || !us) return rc;
		int64_t t = now();
		if (g->left < left) end = t + 1000 * (int64_t)us;
		if (t >= end) return rc;
		if (yields) sched_yield();
	}
}

void gnb_cancel(gnb_group *g) {
	for (int k = 0; k < g->count; k++) {
		if (g->request[k] == MPI_REQUEST_NULL) continue;
		if (g->length[k] >= 0) MPI_Cancel(&g->request[k]); // a send cannot be cancelled
		MPI_Request_free(&g->request[k]);
	}
	g->count = g->left = 0;
}

void gnb_nap(int us) {
	struct timespec t = {0, 1000L * us};
	nanosleep(&t, NULL);
}

MPI_Comm gnb_world(void) { return MPI_COMM_WORLD; }

int gnb_serialized(void) { return MPI_THREAD_SERIALIZED; }

// Open MPI 4 prefers libfabric's provider "net" (TCP) to its own shared memory and TCP. Over this provider a
// message that no rank has asked for yet holds up all later ones between the same two ranks, so the two channels of
// a Comm wait for each other for ever, and every channel waits for the messages of an aborted collective. Open MPI 5
// leaves this provider out by itself. The user's own choice counts.
static void avoid_net(void) {
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
	static const char *const chosen[] = {"pml", "mtl", "mtl_ofi_provider_include", "mtl_ofi_provider_exclude", "opal_common_ofi_provider_include", "opal_common_ofi_provider_exclude"};
	for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
		char name[64];
		snprintf(name, sizeof name, "OMPI_MCA_%s", chosen[i]);
		if (getenv(name)) return;
	}
	setenv("OMPI_MCA_mtl_ofi_provider_exclude", "shm,sockets,tcp,udp,rstream,usnic,net", 1); // fails only for want of memory
#endif
}

int gnb_init(int *provided) {
	avoid_net();
	struct sigaction before[NSIG];
	int known[NSIG] = {0};
	for (int s = 1; s < NSIG; s++) known[s] = sigaction(s, NULL, &before[s]) == 0;
	int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, provided);
	for (int s = 1; s < NSIG; s++)
		if (known[s]) sigaction(s, &before[s], NULL); // fails only for signals that nobody can handle
	return rc;
}

int gnb_dup(MPI_Comm *comm, int *tags) {
	int rc = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_dup(MPI_COMM_WORLD, comm);
	if (rc == MPI_SUCCESS) rc = MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	if (rc != MPI_SUCCESS) return rc;
	int *bound, found = 0;
	rc = MPI_Comm_get_attr(*comm, MPI_TAG_UB, &bound, &found);
	*tags = found ? *bound : 32767; // the least that MPI promises
	return rc;
}

int gnb_local(int *ranks) {
	MPI_Comm local;
	int rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
	if (rc != MPI_SUCCESS) return rc;
	rc = MPI_Comm_size(local, ranks);
	MPI_Comm_free(&local);
	return rc;
}

int gnb_processors(void) { return sysconf(_SC_NPROCESSORS_ONLN); }
