// bulk sends or receives UDP datagrams as fast as it can, with segmentation offload, by system calls alone: what a
// program could do at best. It prints the datagrams and the processor time that they took, in nanoseconds.
//
// bulk send PORT BYTES SECONDS | bulk recv BYTES SECONDS (prints its port first)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define SOL_UDP_LEVEL 17
#define UDP_SEGMENT_OPT 103
#define UDP_GRO_OPT 104
#define SEGMENTS 50
#define TRAINS 4
#define SLOTS 32
#define SLOT_BYTES 65535

static long long now_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long cpu_ns(void) { return now_ns(CLOCK_PROCESS_CPUTIME_ID); }

static void die(const char *what) {
	perror(what);
	exit(1);
}

static int bound_socket(void) {
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0) die("socket");
	return fd;
}

static void send_all(int port, int bytes, double seconds) {
	static char data[SEGMENTS * 2048];
	int fd = bound_socket();
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	struct mmsghdr msgs[TRAINS] = {0};
	struct iovec iov = {data, (size_t)SEGMENTS * bytes};
	char control[TRAINS][CMSG_SPACE(sizeof(uint16_t))] = {0};
	for (int i = 0; i < TRAINS; i++) {
		struct msghdr *h = &msgs[i].msg_hdr;
		h->msg_name = &to, h->msg_namelen = sizeof to, h->msg_iov = &iov, h->msg_iovlen = 1;
		h->msg_control = control[i], h->msg_controllen = sizeof control[i];
		struct cmsghdr *c = CMSG_FIRSTHDR(h);
		c->cmsg_level = SOL_UDP_LEVEL, c->cmsg_type = UDP_SEGMENT_OPT, c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
		*(uint16_t *)CMSG_DATA(c) = bytes;
	}
	long long sent = 0, cpu = cpu_ns(), end = now_ns(CLOCK_MONOTONIC) + seconds * 1e9;
	while (now_ns(CLOCK_MONOTONIC) < end) {
		int n = sendmmsg(fd, msgs, TRAINS, 0);
		if (n < 0) die("sendmmsg");
		sent += (long long)n * SEGMENTS;
	}
	printf("%lld %lld\n", sent, cpu_ns() - cpu);
}

static volatile long long sum; // each datagram is looked at, as a handler would

static void recv_all(int bytes, double seconds) {
	int fd = bound_socket(), on = 1, size = 4 << 20;
	struct sockaddr_in a;
	socklen_t len = sizeof a;
	if (setsockopt(fd, SOL_UDP_LEVEL, UDP_GRO_OPT, &on, sizeof on) < 0) die("UDP_GRO");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0) die("SO_RCVBUF");
	getsockname(fd, (struct sockaddr *)&a, &len);
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	static char slots[SLOTS][SLOT_BYTES];
	static struct mmsghdr msgs[SLOTS];
	static struct iovec iov[SLOTS];
	static struct sockaddr_in from[SLOTS];
	static char control[SLOTS][CMSG_SPACE(sizeof(int))];
	long long got = 0, cpu = 0, end = 0;
	for (;;) {
		for (int i = 0; i < SLOTS; i++) {
			struct msghdr *h = &msgs[i].msg_hdr;
			iov[i] = (struct iovec){slots[i], SLOT_BYTES};
			h->msg_name = &from[i], h->msg_namelen = sizeof from[i], h->msg_iov = &iov[i], h->msg_iovlen = 1;
			h->msg_control = control[i], h->msg_controllen = sizeof control[i], h->msg_flags = 0;
		}
		int n = recvmmsg(fd, msgs, SLOTS, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = {fd, POLLIN, 0};
			if (poll(&p, 1, end == 0 ? 10000 : 200) == 0) break;
			continue;
		}
		if (n < 0) die("recvmmsg");
		if (end == 0) cpu = cpu_ns(), end = now_ns(CLOCK_MONOTONIC) + seconds * 1e9;
		for (int i = 0; i < n; i++) {
			int segment = msgs[i].msg_len;
			struct cmsghdr *c = CMSG_FIRSTHDR(&msgs[i].msg_hdr);
			if (c && c->cmsg_type == UDP_GRO_OPT) segment = *(int *)CMSG_DATA(c);
			for (int at = 0; at < (int)msgs[i].msg_len; at += segment) sum += slots[i][at], got++;
		}
		if (now_ns(CLOCK_MONOTONIC) >= end) break;
	}
	printf("%lld %lld\n", got, cpu_ns() - cpu);
}

int main(int argc, char **argv) {
	if (argc == 5 && !strcmp(argv[1], "send")) send_all(atoi(argv[2]), atoi(argv[3]), atof(argv[4]));
	else if (argc == 4 && !strcmp(argv[1], "recv")) recv_all(atoi(argv[2]), atof(argv[3]));
	else return fprintf(stderr, "usage: bulk send PORT BYTES SECONDS | bulk recv BYTES SECONDS\n"), 2;
	return 0;
}
