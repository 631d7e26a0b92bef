// tp_model.h: one rank's share of the network, and the kernels that compute it.
//
// With a world of N, rank r computes (1) outputs [r/N, (r+1)/N) of layer 1, from all inputs: column-parallel; (2) for all outputs
// of layer 2, the part that comes from those inputs: row-parallel, to be summed over the ranks; (3) its share of the classes,
// padded so that every rank has as many.
#ifndef EXAMPLES_TP_MODEL_H
#define EXAMPLES_TP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <vllm_vt/vt.h>

#include "digits.h"

// Leaves the function with the status of `call` unless it is VT_OK. The details stay in vt_last_error().
#define TRY(call)                  \
  do {                             \
    vt_status try_status = (call); \
    if (try_status != VT_OK) {     \
      return try_status;           \
    }                              \
  } while (0)

// A block of a layer in device memory. Weights are stored [inputs][outputs], so that the inner loop runs over outputs: that
// vectorises without reordering a sum.
typedef struct dense {
  size_t inputs;
  size_t outputs;
  float *weights;
  float *bias;  // [outputs]
} dense;

// Which part of a layer: inputs and outputs from `first`, of which `real` exist and `padded` are stored (the rest are zero).
typedef struct range {
  size_t first;
  size_t real;
  size_t padded;
} range;

typedef struct tp_model {
  dense hidden1;
  dense hidden2;
  dense scores;
} tp_model;

// Copies the wanted part of layer `k` to `staging`: weights, then bias.
static inline void dense_pack(const mlp *net, size_t k, range in, range out, float *staging) {
  memset(staging, 0, (in.padded + 1) * out.padded * sizeof *staging);
  for (size_t o = 0; o < out.real; o++) {
    const float *row = net->weights[k] + (out.first + o) * net->sizes[k] + in.first;
    for (size_t i = 0; i < in.real; i++) {
      staging[i * out.padded + o] = row[i];
    }
    staging[in.padded * out.padded + o] = net->bias[k][out.first + o];
  }
}

// Puts the wanted part of layer `k` into device memory. To be given back with dense_free(), also after a failure.
static inline vt_status dense_load(vt_device device, vt_queue *queue, const mlp *net, size_t k, range in, range out, dense *layer) {
  const size_t bytes = (in.padded + 1) * out.padded * sizeof(float);
  void *block = NULL;
  void *staging = NULL;
  *layer = (dense){.inputs = in.padded, .outputs = out.padded};
  TRY(vt_alloc(device, bytes, &block));
  layer->weights = block;
  layer->bias = layer->weights + in.padded * out.padded;

  TRY(vt_pinned_alloc(device, bytes, &staging));
  dense_pack(net, k, in, out, staging);
  vt_status status = vt_copy(queue, block, staging, bytes);
  if (status == VT_OK) {
    status = vt_queue_synchronize(queue);
  }
  (void)vt_pinned_free(device, staging);
  return status;
}

static inline void dense_free(vt_device device, dense *layer) {
  (void)vt_free(device, layer->weights);
  *layer = (dense){0};
}

// Loads rank `rank`'s share of the network. The two hidden layers must split evenly.
static inline vt_status tp_model_load(vt_device device, vt_queue *queue, const mlp *net, size_t rank, size_t world, tp_model *out) {
  const size_t width = net->sizes[1] / world;
  const size_t classes = (DIGITS_CLASSES + world - 1) / world;  // 12 over a world of 4: the last two don't exist
  const size_t begin = rank * classes < DIGITS_CLASSES ? rank * classes : DIGITS_CLASSES;
  const size_t left = DIGITS_CLASSES - begin;

  const range all_pixels = {0, net->sizes[0], net->sizes[0]};
  const range my_hidden1 = {rank * width, width, width};
  const range all_hidden2 = {0, net->sizes[2], net->sizes[2]};
  const range my_classes = {begin, left < classes ? left : classes, classes};
  TRY(dense_load(device, queue, net, 0, all_pixels, my_hidden1, &out->hidden1));
  TRY(dense_load(device, queue, net, 1, my_hidden1, all_hidden2, &out->hidden2));
  return dense_load(device, queue, net, 2, all_hidden2, my_classes, &out->scores);
}

static inline void tp_model_free(vt_device device, tp_model *model) {
  dense_free(device, &model->hidden1);
  dense_free(device, &model->hidden2);
  dense_free(device, &model->scores);
}

// out[batch][outputs] = start + in[batch][inputs] * weights, where `start` is [outputs], or NULL for zero.
static inline void dense_apply(const dense *layer, const float *start, const float *in, float *restrict out, size_t batch) {
  const size_t outputs = layer->outputs;
  for (size_t b = 0; b < batch; b++, in += layer->inputs, out += outputs) {
    for (size_t o = 0; o < outputs; o++) {
      out[o] = start != NULL ? start[o] : 0.0f;
    }
    for (size_t i = 0; i < layer->inputs; i++) {
      const float x = in[i];
      const float *row = layer->weights + i * outputs;
      for (size_t o = 0; o < outputs; o++) {
        out[o] += x * row[o];
      }
    }
  }
}

static inline void relu(float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    values[i] = values[i] > 0.0f ? values[i] : 0.0f;
  }
}

// values[batch][width] = relu(values + bias)
static inline void bias_relu(const float *bias, float *values, size_t batch, size_t width) {
  for (size_t b = 0; b < batch; b++) {
    for (size_t o = 0; o < width; o++) {
      values[b * width + o] += bias[o];
    }
  }
  relu(values, batch * width);
}

// Picks the best class of each image. `gathered` is [world][batch][share]: rank r holds classes from r * share on.
static inline void best_class(const float *gathered, size_t share, size_t batch, uint8_t *classes) {
  for (size_t b = 0; b < batch; b++) {
    float best = 0.0f;
    for (size_t c = 0; c < DIGITS_CLASSES; c++) {
      const float score = gathered[(c / share * batch + b) * share + c % share];
      if (c == 0 || score > best) {
        best = score;
        classes[b] = (uint8_t)c;
      }
    }
  }
}

#endif
