// ggml_style.c: relu(w x + b) in the manner of a ggml backend user: allocate tensors, set them, compute a graph, get the result.
//
// A node is a host function on the queue, as it would be a kernel launch on a GPU. The graph is captured once, then launched per
// input.
#include <stdio.h>
#include <stdlib.h>
#include <vllm_vt/vt.h>

typedef struct tensor {
  size_t n;
  float *data;
} tensor;

typedef struct node {
  enum { MUL_MAT, ADD, RELU } op;
  const tensor *a, *b;
  tensor *out;
} node;

static const vt_device device = {VT_DEVICE_CPU, 0};

static void must(vt_status status) {
  if (status != VT_OK) {
    fprintf(stderr, "%s\n", vt_last_error()->message);
    exit(1);
  }
}

static tensor tensor_new(size_t n) {
  void *data = NULL;
  must(vt_alloc(device, n * sizeof(float), &data));
  return (tensor){n, data};
}

static vt_status compute(void *user) {
  const node *n = user;
  const float *a = n->a->data;
  for (size_t i = 0; i < n->out->n; i++) {
    float value = n->op == RELU ? (a[i] > 0 ? a[i] : 0) : n->op == ADD ? a[i] + n->b->data[i] : 0;
    for (size_t k = 0; n->op == MUL_MAT && k < n->b->n; k++) {
      value += a[i * n->b->n + k] * n->b->data[k];
    }
    n->out->data[i] = value;
  }
  return VT_OK;
}

int main(void) {
  static const float weights[2][3] = {{1, 2, 0}, {-1, 0.5f, 3}}, bias[2] = {0.5f, -4}, inputs[2][3] = {{1, 2, 3}, {-9, 0, 2}};
  static const float expected[2][2] = {{5.5f, 5}, {0, 11}};
  tensor w = tensor_new(6), b = tensor_new(2), x = tensor_new(3), y = tensor_new(2);
  node nodes[] = {{MUL_MAT, &w, &x, &y}, {ADD, &y, &b, &y}, {RELU, &y, NULL, &y}};
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_queue *queue = NULL;
  vt_graph *graph = NULL;
  float results[2][2];
  options.flags = VT_QUEUE_ASYNC;
  must(vt_queue_create(device, &options, &queue));  // ggml_backend_dev_init

  must(vt_copy(queue, w.data, weights, sizeof weights));  // ggml_backend_tensor_set_async
  must(vt_copy(queue, b.data, bias, sizeof bias));
  must(vt_graph_begin_capture(queue));  // ggml_backend_graph_plan_create: from here to the end, calls are recorded
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    must(vt_queue_host_func(queue, compute, &nodes[i], NULL));
  }
  must(vt_graph_end_capture(queue, &graph));

  for (int i = 0; i < 2; i++) {
    must(vt_copy(queue, x.data, inputs[i], sizeof inputs[i]));
    must(vt_graph_launch(graph, queue));                          // ggml_backend_graph_plan_compute
    must(vt_copy(queue, results[i], y.data, sizeof results[i]));  // ggml_backend_tensor_get_async
  }
  must(vt_queue_destroy(queue));  // ggml_backend_synchronize, ggml_backend_free: waits, and answers what failed
  vt_graph_release(graph);        // ggml_backend_graph_plan_free
  int wrong = 0;
  for (int i = 0; i < 2; i++) {
    printf("%g %g\n", (double)results[i][0], (double)results[i][1]);
    wrong |= results[i][0] != expected[i][0] || results[i][1] != expected[i][1];
  }
  tensor *tensors[] = {&w, &b, &x, &y};
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
    must(vt_free(device, tensors[i]->data));  // ggml_backend_buffer_free
  }
  return wrong;
}
