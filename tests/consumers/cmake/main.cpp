// main.cpp: the headers and the library from C++.
#include <vllm_vt/vt.h>
#include <cstdio>
#include <cstring>

int main() {
  vt_device_info info{};
  info.struct_size = sizeof(info);
  if (vt_device_get_info(vt_device{VT_DEVICE_CPU, 0}, &info) != VT_OK) {
    std::fprintf(stderr, "%s\n", vt_last_error()->message);
    return 1;
  }
  if (vt_device_get_info(vt_device{VT_DEVICE_CPU, 16}, &info) != VT_ERR_INVALID_ARGUMENT ||
      std::strlen(vt_last_error()->message) == 0) {
    std::fprintf(stderr, "device index 16 was not refused with a message\n");
    return 1;
  }
  std::printf("%s\n", info.name);
  return 0;
}
