// harness_report.c: the reports of the validation layer while a case runs.
#include "suite.h"

#include <stdio.h>

// Reports may come from any thread, also from one that a case has left behind.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vt_case *current;

static void copy_site(vt_validate_site *site, char *function, char *symbol) {
  if (site->function != NULL) {
    snprintf(function, sizeof(((vt_test_report *)0)->now), "%s", site->function);
    site->function = function;
  }
  snprintf(symbol, sizeof(((vt_test_report *)0)->now_symbol), "%s", site->symbol);
  site->symbol = symbol;
}

static void on_report(void *unused, const vt_validate_report *report) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  vt_case *c = current;
  if (c != NULL) {
    vt_test_report *kept = &c->report;
    kept->report = *report;
    copy_site(&kept->report.now, kept->now, kept->now_symbol);
    copy_site(&kept->report.before, kept->before, kept->before_symbol);
    snprintf(kept->message, sizeof(kept->message), "%s", report->message);
    kept->report.message = kept->message;
    c->new_reports++;
    if (!c->checks_reports && (c->test->needs & REPORTS) == 0) {
      FAIL_CASE(c, "a report that the case doesn't declare: %s", report->message);
    }
  }
  pthread_mutex_unlock(&mutex);
}

void vt_test_reports_begin(vt_case *c) {
  pthread_mutex_lock(&mutex);
  current = c;
  pthread_mutex_unlock(&mutex);
  vt_validate_set(on_report, NULL);
}

void vt_test_reports_end(vt_case *c) {
  pthread_mutex_lock(&mutex);
  current = NULL;
  pthread_mutex_unlock(&mutex);
  if (c->turned_on) {
    EXPECT_OK(c, vt_validate_disable());
  }
}

void vt_test_validate(vt_case *c) {
  c->checks_reports = 1;
  if (!vt_validate_is_enabled()) {
    EXPECT_OK(c, vt_validate_enable());
    c->turned_on = 1;
  }
}

static int same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

int vt_test_check_report(vt_case *c, const char *file, int line, vt_validate_kind kind, const char *now, const char *before) {
  pthread_mutex_lock(&mutex);
  size_t count = c->new_reports;
  vt_validate_report report = c->report.report;
  c->new_reports = 0;
  pthread_mutex_unlock(&mutex);
  if (count == 0) {
    return vt_test_fail(c, file, line, "no report of %s", vt_validate_kind_get_name(kind));
  }
  if (count > 1 || report.kind != kind || !same(report.now.function, now) || !same(report.before.function, before)) {
    return vt_test_fail(c, file, line, "expected one report of %s (%s, %s), got %zu: %s", vt_validate_kind_get_name(kind), now,
                        before == NULL ? "nothing" : before, count, report.message);
  }
  if ((now != NULL && report.now.caller == NULL) || (before != NULL && report.before.caller == NULL)) {
    return vt_test_fail(c, file, line, "a caller isn't known: %s", report.message);
  }
  return 1;
}

int vt_test_check_quiet(vt_case *c, const char *file, int line) {
  pthread_mutex_lock(&mutex);
  size_t count = c->new_reports;
  c->new_reports = 0;
  pthread_mutex_unlock(&mutex);
  return count == 0 ? 1 : vt_test_fail(c, file, line, "%zu reports, the last one: %s", count, c->report.message);
}

const vt_validate_report *vt_test_last_report(vt_case *c) {
  return c->report.report.message == NULL ? NULL : &c->report.report;
}
