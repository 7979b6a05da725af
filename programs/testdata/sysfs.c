/* A program that finds the device in the directories of sysfs, beside those of the machine's. Prints "sysfs: ok". */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check(int good, const char *what)
{
	if (!good) {
		printf("sysfs: %s\n", what);
		exit(1);
	}
}

/* How many entries a directory has, and whether a name is among them. */
static int entries(DIR *d, const char *name, int *found)
{
	int n = 0;
	*found = 0;
	for (struct dirent *e; (e = readdir(d)); n++)
		*found |= !strcmp(e->d_name, name);
	return n;
}

static void directory(const char *path, const char *has)
{
	int found, again;
	struct stat s;
	DIR *d = opendir(path);
	check(d != NULL, path);
	int n = entries(d, has, &found);
	check(n > 0 && found, has);
	rewinddir(d);
	check(entries(d, has, &again) == n && again, "the second time");
	check(!closedir(d), "closedir");
	check(!stat(path, &s) && S_ISDIR(s.st_mode) && !access(path, R_OK | X_OK), "stat");
}

static void file(const char *path, const char *want)
{
	char text[64] = "", link[8];
	struct stat s;
	FILE *f = fopen(path, "re");
	check(f && fgets(text, sizeof text, f) && !strcmp(text, want), path);
	fclose(f);
	check(!lstat(path, &s) && S_ISREG(s.st_mode) && access(path, W_OK), "a file to read");
	check(!fopen(path, "r+") && readlink(path, link, sizeof link) < 0, "nothing else");
}

/* Where a path leads, which is nowhere if that is NULL. */
static void leads(const char *path, const char *to)
{
	char own[4096], *found = realpath(path, NULL);
	check(to ? found && !strcmp(found, to) && realpath(path, own) && !strcmp(own, to) : !found && !realpath(path, own), path);
	free(found);
}

int main(void)
{
	const char *as = getenv("IWARP_AS");
	struct ibv_device **all = ibv_get_device_list(NULL);
	char path[256];
	check(!strcmp(all[0]->ibdev_path, "/sys/class/infiniband/iwarp0"), "ibdev_path");
	directory("/sys/class/infiniband", "iwarp0");
	directory("/sys/class/infiniband/", "iwarp0");
	directory(all[0]->ibdev_path, "ports");
	directory("/sys/class/infiniband/iwarp0/ports/1", "gids");
	directory("/sys/class/infiniband/iwarp0/ports/1/gid_attrs/types", "0");
	directory("/sys/class/net", "lo");
	snprintf(path, sizeof path, "%s/node_type", all[0]->ibdev_path);
	file(path, as && !strcmp(as, "roce") ? "1: CA\n" : "4: RNIC\n");
	file("/sys/class/infiniband/iwarp0/ports/1/state", "4: ACTIVE\n");
	file("/sys/class/infiniband/iwarp0/ports/1/link_layer", "Ethernet\n");
	leads("/sys/class/infiniband/iwarp0", "/sys/devices/virtual/infiniband/iwarp0");
	leads("/sys/class/infiniband/iwarp0/ports/../node_type", "/sys/devices/virtual/infiniband/iwarp0/node_type");
	leads("/sys/class/infiniband/iwarp0/../..", "/sys/devices/virtual");
	leads("/sys/class/infiniband/iwarp0/../../../../../..", "/");
	leads("/sys/class/infiniband/iwarp0/device", NULL);
	leads("/sys/class/../class/net", "/sys/class/net");
	directory("/sys/devices/virtual/infiniband/iwarp0/ports/1", "gids");
	check(!opendir("/sys/class/infiniband/iwarp") && !opendir("/sys/class/infiniband/iwarp0/ports/2"), "no such directory");
	check(!fopen("/sys/class/infiniband/iwarp0/ports/1/none", "r"), "no such file");
	ibv_free_device_list(all);
	puts("sysfs: ok");
	return 0;
}
