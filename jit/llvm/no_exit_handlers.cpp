// The plugin stays until the process ends, and a thread may be generating code when that begins. So nothing in here,
// LLVM's own static objects least of all, is destroyed at exit: what registers destructors within the plugin is linked
// to this function in place of the C library's.

extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
