// ggml_style.c: y = relu(w * x) in the manner of a ggml backend user: allocate, set, compute a graph, get.
#include <stdio.h>
#include <stdlib.h>
#include <vllm_vt/vt.h>

enum { N = 4, BYTES = N * sizeof(float) };

static void must(vt_status status) {
  if (status != VT_OK) {
    fprintf(stderr, "%s\n", vt_last_error()->message);
    exit(1);
  }
}

static vt_status relu_of_product(void *user) {  // a node; on a GPU it would launch a kernel
  float *w = user, *x = w + N, *y = w + 2 * N;
  for (int i = 0; i < N; i++)
    y[i] = w[i] * x[i] > 0 ? w[i] * x[i] : 0;
  return VT_OK;
}

int main(void) {
  float weights[N] = {1, 2, 3, 4}, input[N] = {5, -6, 7, -8}, output[N];
  vt_device device = {VT_DEVICE_CPU, 0};
  vt_queue *queue = NULL;
  vt_graph *graph = NULL;
  void *slab = NULL;
  must(vt_queue_create(device, NULL, &queue));  // ggml_backend_dev_init
  must(vt_alloc(device, 3 * BYTES, &slab));     // ggml_backend_alloc_ctx_tensors
  float *w = slab;
  must(vt_copy(queue, w, weights, BYTES));  // ggml_backend_tensor_set_async
  must(vt_graph_begin_capture(queue));      // ggml_backend_graph_plan_create: until the end, calls are recorded
  must(vt_queue_host_func(queue, relu_of_product, w, NULL));
  must(vt_graph_end_capture(queue, &graph));
  must(vt_copy(queue, w + N, input, BYTES));
  must(vt_graph_launch(graph, queue));             // ggml_backend_graph_plan_compute
  must(vt_copy(queue, output, w + 2 * N, BYTES));  // ggml_backend_tensor_get_async
  must(vt_queue_destroy(queue));                   // ggml_backend_synchronize, ggml_backend_free: answers what failed
  vt_graph_release(graph);                         // ggml_backend_graph_plan_free
  must(vt_free(device, slab));                     // ggml_backend_buffer_free
  return !(output[0] == 5 && output[1] == 0 && output[2] == 21 && output[3] == 0);
}
