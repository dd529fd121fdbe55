/* A disk that fails: preloaded into the processes of a kill test.
 *
 * While the file named by ORDAIN_KILL_TEST_FAULT exists, its first letter says what is wrong: with 's' every fsync and
 * fdatasync of a regular file fails with EIO; with 'd' the disk is full, so that no file can be made or become longer (ENOSPC).
 * What has its space already can still be written. The first failure of each kind leaves a file with ".hit" after the name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *flag;
static char hit[4096];

__attribute__((constructor)) static void begin(void) {
    flag = getenv("ORDAIN_KILL_TEST_FAULT");
    if (flag && snprintf(hit, sizeof hit, "%s.hit", flag) >= (int)sizeof hit) flag = NULL;
}

static char fault(void) {
    char letter = 0;
    int before = errno, file;
    if (!flag) return 0;
    file = syscall(SYS_openat, AT_FDCWD, flag, O_RDONLY | O_CLOEXEC, 0);
    if (file >= 0) {
        if (syscall(SYS_read, file, &letter, 1) != 1) letter = 0;
        syscall(SYS_close, file);
    }
    errno = before;
    return letter;
}

static int fail(int error) {
    int file = syscall(SYS_openat, AT_FDCWD, hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) syscall(SYS_close, file);
    errno = error;
    return -1;
}

static int is_regular(int file, off_t *length) {
    struct stat status;
    int before = errno;
    int regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && length) *length = status.st_size;
    errno = before;
    return regular;
}

int fsync(int file) {
    if (fault() == 's' && is_regular(file, NULL)) return fail(EIO);
    return syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    if (fault() == 's' && is_regular(file, NULL)) return fail(EIO);
    return syscall(SYS_fdatasync, file);
}

static ssize_t write_at(int file, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    off_t length = 0;
    if (fault() == 'd' && is_regular(file, &length) && offset + (off_t)count > length) return fail(ENOSPC);
    if (!next) next = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    return next(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return write_at(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
    return write_at(file, bytes, count, offset);
}

static int open_path(const char *path, int flags, mode_t mode) {
    int before = errno;
    if ((flags & O_CREAT) && fault() == 'd' && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0) return fail(ENOSPC);
    errno = before;
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open_path(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open_path(path, flags | O_LARGEFILE, mode);
}
