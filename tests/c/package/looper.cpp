// In the place of a looper, where counting calls is all that is wanted.
extern "C" {
int ALooper_pollOnce(int, int *, int *, void **) { return -3; }
int ALooper_pollAll(int, int *, int *, void **) { return -3; }
int ALooper_addFd(void *, int, int, int, int (*)(int, int, void *), void *) { return 1; }
int ALooper_removeFd(void *, int) { return 1; }
void *ALooper_forThread() { return nullptr; }
void ALooper_acquire(void *) {}
void ALooper_release(void *) {}
}
