/* The main Looper of an app on a Java VM: Android's own Looper, Handler and MessageQueue. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include <android/looper.h>

#include "../../benches/rounds.hpp"

extern "C" {
#include "../c/check.h"
#include "../c/support/blocks.h"
#include "../c/support/procfs.h"
}
#include "main_looper.h"
#include "reports.h"
#include "vm.h"

void killed();
/* Printers of others. */
void wrapped();
void wrapped_lives();
void within();
void left_within();
void climbed();
void throwing();
void shared();
/* Messages, modes and loaders that are out of the ordinary. */
void idle_after();
void odd_names();
void other_loader();
void rewatched();
void deep();
void changed_within();
void toggled();
/* The Java face, used wrongly. */
void face_misused();
/* Many lives, and lives that end in a watch. */
void cycles();
void racing();

namespace {

/* By a heartbeat: each block, with the Java stack of what blocked. No Printer, so the message is not known. */
void probed(void) {
  begin(false, 200);
  watch();
  run(1000, 100, 500);
  WAIT_FOR((flush(), blocks_in(BC_BLOCK_ENDED) >= 10), 5000);
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  printf("%u blocks, %u with a Java stack\n", blocks_in(BC_BLOCK_ENDED), stacks);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 10, "%u blocks of 10", blocks_in(BC_BLOCK_ENDED));
  CHECK(named == 0 && stacks == 10, "%u named, %u with a Java stack", named, stacks);
  end();
}

/* By marks: 10,000 messages, of which 50 block. */
void marked(void) {
  begin(true, 150);
  bc_loop *loop = watch();
  run(10000, 200, 400);
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  bc_loop_stats stats = {};
  stats.struct_size = sizeof stats;
  CHECK_OK(bc_loop_stats_get(loop, &stats));
  printf("%u blocks, %u named, %u with a Java stack, %llu dispatches\n", blocks_in(BC_BLOCK_ENDED), named, stacks,
         static_cast<unsigned long long>(stats.dispatches));
  CHECK(blocks_in(BC_BLOCK_ENDED) == 50, "%u blocks of 50", blocks_in(BC_BLOCK_ENDED));
  CHECK(named == 50 && stacks == 50, "%u named, %u with a Java stack", named, stacks);
  /* The one that quits is one, too. */
  CHECK(stats.dispatches == 10001, "%llu dispatches", static_cast<unsigned long long>(stats.dispatches));
  CHECK(health().calls_misused == 0, "%llu misused", static_cast<unsigned long long>(health().calls_misused));
  end();
}

unsigned printed(int which) {
  int lines = app_number("printed", which);
  CHECK(lines >= 0, "Printer %d was not told of as many ends as begins", which);
  return static_cast<unsigned>(lines);
}

/* Somebody else's Printers: one that was there before goes on; one that is put over ours, and none at all, are noticed, and
 * the one that is there then goes on, too. */
void *replace_printers(void *) {
  vm_attach();
  const int others[] = {1, 2, 0};
  for (int replaced = 0; replaced < 2; replaced++) {
    app("print", "(I)V", others[replaced + 1]);
    uint64_t before = health().calls_misused;
    /* The main thread has to run for that. */
    WAIT_FOR((app("post", "(III)V", 50, 0, 0), pause_ms(20), health().calls_misused == before + 1), 30000);
    uint64_t seen = dispatches();
    unsigned second = printed(2);
    WAIT_FOR((app("post", "(III)V", 1, 0, 0), pause_ms(5), dispatches() > seen), 10000);
    if (replaced == 0) {
      WAIT_FOR(printed(2) > second, 10000);
    }
  }
  unsigned first = printed(1), second = printed(2);
  uint64_t seen = dispatches();
  app("post", "(III)V", 20, 20, 300);
  WAIT_FOR(dispatches() >= seen + 20, 20000);
  CHECK(printed(1) == first && printed(2) == second, "a Printer that was removed is called");
  app("quit", "()V");
  vm_detach();
  return nullptr;
}

void printers(void) {
  begin(true, 150);
  app("print", "(I)V", 1);
  watch();
  run(100, 0, 0);
  CHECK(printed(1) == 101 && dispatches() == 101, "%u lines, %llu dispatches", printed(1),
        static_cast<unsigned long long>(dispatches()));
  unsigned long thread = start_thread(replace_printers, nullptr);
  app("loop", "()V");
  join_thread(thread);
  flush();
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  CHECK(named == 1 && stacks == 1, "%u blocks are named, %u have a Java stack", named, stacks);
  /* Whose turn it was before has it again. */
  app("print", "(I)V", 1);
  bc_loop *loop = nullptr;
  CHECK_OK(bc_java_watch(vm(), nullptr, &loop));
  CHECK(app_number("printer", 0) == -1, "ours is not there");
  end();
  CHECK(app_number("printer", 0) == 1, "Printer %d is there after uninstall", app_number("printer", 0));
}

/* From another thread, which is attached to the VM or not. */
bool is_attached;

void *watch_from_elsewhere(void *) {
  if (is_attached) {
    vm_attach();
  }
  bc_loop *loop = watch(), *again = nullptr;
  CHECK_OK(bc_java_watch(vm(), "again", &again));
  CHECK(loop == again, "another token for the same thread");
  void *env;
  bool is_still = vm()->GetEnv(&env, JNI_VERSION_1_6) == JNI_OK;
  CHECK(is_still == is_attached, "the calling thread is %sattached afterwards", is_still ? "" : "not ");
  if (!is_attached) {
    vm_attach();
  }
  app("post", "(III)V", 3, 3, 500);
  app("quit", "()V");
  vm_detach();
  return nullptr;
}

void elsewhere(bool is_precise) {
  begin(is_precise, 200);
  unsigned long thread = start_thread(watch_from_elsewhere, nullptr);
  app("loop", "()V");
  join_thread(thread);
  app("quit", "()V");
  app("loop", "()V");
  WAIT_FOR((flush(), blocks_in(BC_BLOCK_ENDED) == 1), 5000);
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  CHECK(stacks == 1 && named == is_precise, "%u blocks are named, %u have a Java stack", named, stacks);
  CHECK(blocks_at(0)->tid == getpid() && strcmp(blocks_at(0)->loop_name, "again") == 0, "thread %d, loop %s",
        blocks_at(0)->tid, blocks_at(0)->loop_name);
  end();
}

void from_detached(void) {
  elsewhere(false);
}

void from_attached(void) {
  is_attached = true;
  elsewhere(true);
}

/* In an app without a class of the library's, which has one in itself; a new one after uninstall. */
void from_library(void) {
  begin(false, 200);
  app("withoutClass", "()V");
  for (int time = 1; time <= 2; time++) {
    unsigned long thread = start_thread(watch_from_elsewhere, nullptr);
    app("loop", "()V");
    join_thread(thread);
    app("quit", "()V");
    app("loop", "()V");
    WAIT_FOR((flush(), blocks_in(BC_BLOCK_ENDED) == static_cast<unsigned>(time)), 5000);
    CHECK(app_number("embedded", 0) == time, "%d classes were defined", app_number("embedded", 0));
    CHECK_OK(bc_uninstall());
    if (time == 1) {
      bc_config config = config_of(200);
      install_and_start(&config);
    }
  }
}

/* A main thread that runs no messages: nobody waits for it for ever, and nothing is left behind. */
void *watch_in_vain(void *) {
  bc_loop *loop = reinterpret_cast<bc_loop *>(&loop);
  CHECK_STATUS(bc_java_watch(vm(), nullptr, &loop), BC_ERROR_TIMEOUT);
  CHECK(loop == nullptr, "a token after a failure");
  return nullptr;
}

void in_vain(void) {
  begin(false, 200);
  join_thread(start_thread(watch_in_vain, nullptr));
  run(3, 3, 500);
  CHECK(health().loops_watched == 0 && blocks_told() == 0, "watched all the same");
  end();
}

/* A message throws through the Looper, and the app runs it on. */
void thrown(void) {
  begin(true, 200);
  watch();
  app("fail", "()V");
  app("loop", "()V");
  run(10, 10, 500);
  unsigned named, stacks;
  count_blocks(&named, &stacks);
  CHECK(named == 1 && stacks == 1 && blocks_in(BC_BLOCK_ENDED) == 1, "%u named, %u with a Java stack, %u blocks", named,
        stacks, blocks_in(BC_BLOCK_ENDED));
  CHECK(dispatches() == 12 && health().calls_misused == 0, "%llu dispatches, %llu misused",
        static_cast<unsigned long long>(dispatches()), static_cast<unsigned long long>(health().calls_misused));
  end();
}

/* No VM, no library. */
void refused(void) {
  bc_loop *loop = reinterpret_cast<bc_loop *>(&loop);
  vm_begin();
  CHECK_STATUS(bc_java_watch(vm(), nullptr, &loop), BC_ERROR_INVALID_STATE);
  CHECK(loop == nullptr, "a token after a failure");
  bc_config config = config_of(200);
  CHECK_OK(bc_install(&config));
  loop = reinterpret_cast<bc_loop *>(&loop);
  CHECK_STATUS(bc_java_watch(nullptr, nullptr, &loop), BC_ERROR_INVALID_ARGUMENT);
  CHECK(loop == nullptr, "a token after a failure");
  CHECK_STATUS(bc_java_watch(vm(), nullptr, nullptr), BC_ERROR_INVALID_ARGUMENT);
  CHECK_OK(bc_uninstall());
}

/* A message calls back into the library, and an exception that it has pending stays. */
void call_back(JNIEnv *env, jint step) {
  if (step == 1) {
    CHECK_OK(bc_pause());
    CHECK_OK(bc_resume());
    bc_loop *again = nullptr;
    CHECK_OK(bc_java_watch(vm(), "from inside", &again));
    bc_loop *own = nullptr;
    CHECK_OK(bc_loop_watch("from inside", &own));
    bc_dispatch_begin(own, "inner", 5);
    sleep_ms(500);
    bc_dispatch_end(own);
    return;
  }
  jclass pending = env->FindClass("dev/blockcanary/test/Messages$Pending");
  env->ThrowNew(pending, "stays");
  jthrowable before = env->ExceptionOccurred();
  bc_loop *again = nullptr;
  CHECK_OK(bc_java_watch(vm(), nullptr, &again));
  jthrowable after = env->ExceptionOccurred();
  CHECK(after != nullptr, "the exception is gone");
  env->ExceptionClear();
  CHECK(env->IsSameObject(before, after), "another exception is pending");
  env->Throw(after);
}

void called_back(void) {
  begin(true, 200);
  on_step = call_back;
  watch();
  app("step", "(I)V", 1);
  run(10, 10, 500);
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 5) == 1, "%u blocks of the inner dispatch", blocks_tagged(BC_BLOCK_ENDED, 5));
  CHECK(strcmp(blocks_get(BC_BLOCK_ENDED, 5)->what, "inner") == 0, "%s", blocks_get(BC_BLOCK_ENDED, 5)->what);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 2, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK(app_truth("catches", 2), "no exception came through");
  end();
}

/* The VM goes down under us. */
void vm_gone(void) {
  begin(true, 200);
  watch();
  run(10, 10, 500);
  CHECK(blocks_in(BC_BLOCK_ENDED) == 1, "%u blocks", blocks_in(BC_BLOCK_ENDED));
  CHECK(vm()->DestroyJavaVM() == JNI_OK, "the VM does not go down");
  /* Its marks go on without it; a stack is asked for in vain. */
  bc_loop *own = nullptr;
  CHECK_OK(bc_loop_watch("main", &own));
  blocking_dispatch(own, "after it", 6, 500);
  flush();
  CHECK(blocks_tagged(BC_BLOCK_ENDED, 6) == 1, "%u blocks", blocks_tagged(BC_BLOCK_ENDED, 6));
  CHECK(strstr(java_stack(blocks_get(BC_BLOCK_ENDED, 6)->path), "null") != nullptr, "a Java stack without a VM");
  uint64_t before = now_ns();
  end();
  CHECK(now_ns() - before < 2000000000u, "uninstall waited for the VM");
}

/* Nothing is left of a life: no thread, no attachment, no descriptor, no Printer. */
void lives(void) {
  vm_begin();
  app("precise", "(Z)V", true);
  unsigned threads_before = 0, files_before = 0;
  for (int life = 0; life < 6; life++) {
    bc_config config = config_of(200);
    CHECK_OK(bc_install(&config));
    CHECK_OK(bc_start());
    app("precise", "(Z)V", life % 2 == 0);
    bc_loop *loop = nullptr;
    CHECK_OK(bc_java_watch(vm(), nullptr, &loop));
    run(20, 0, 0);
    CHECK_OK(bc_uninstall());
    CHECK(app_number("printer", 0) == 0, "our Printer is left behind");
    run_bare(20);
    /* The VM makes threads of its own at first. */
    if (life == 1) {
      threads_before = app_number("threads", 0);
      files_before = descriptors();
    }
  }
  CHECK(static_cast<unsigned>(app_number("threads", 0)) <= threads_before, "%d threads of Java's, %u before",
        app_number("threads", 0), threads_before);
  CHECK(descriptors() <= files_before, "%u descriptors, %u before", descriptors(), files_before);
}

/* The app's own face: configured by BlockCanary's names, told on another thread. */
void faced(void) {
  vm_begin();
  name_folder();
  CHECK(app_number("face", static_cast<jint>(getpid())) == 0, "the face refuses");
  run_bare(10, 10, 500);
  CHECK_OK(bc_flush(20000));
  /* Told as going on and as ended, by another thread, with message, report and stack. */
  CHECK(app_number("told", 1) == 1 && app_number("told", 3) == 1, "%d ongoing, %d ended", app_number("told", 1),
        app_number("told", 3));
  CHECK(health().blocks_delivered == 1, "%llu delivered", static_cast<unsigned long long>(health().blocks_delivered));
  end();
}

/* What a message costs: the marks of our Printer beside a Printer that does nothing, and beside BlockCanary's. */
void chain_with(int printer, unsigned times) {
  app("cost", "(I)V", printer);
  app("chain", "(I)V", static_cast<jint>(times));
}

void unwatched(unsigned times) {
  CHECK_OK(bc_pause());
  chain_with(0, times);
  CHECK_OK(bc_resume());
}

void by_heartbeat(unsigned times) {
  chain_with(0, times);
}

void bare_printer(unsigned times) {
  chain_with(1, times);
}

void our_printer(unsigned times) {
  chain_with(2, times);
}

void blockcanarys_printer(unsigned times) {
  chain_with(3, times);
}

void costs(void) {
  vm_begin_fast();
  bc_config config = config_of(1000);
  install_and_start(&config);
  bc_loop *loop = nullptr, *marks = nullptr;
  CHECK_OK(bc_looper_probe(ALooper_forThread(), "heartbeat", &loop));
  app("precise", "(Z)V", true);
  CHECK_OK(bc_java_watch(vm(), "marks", &marks));
  app("keep", "(I)V", 0);
  constexpr unsigned kMessages = 4000, kRounds = 21;
  std::vector<bench::Candidate> rows = {
      {"message of Java's, not watched", unwatched, kMessages, 0, 0, {}},
      {"the same by a heartbeat", by_heartbeat, kMessages, 0, 1.10, {}},
      {"with a Printer that does nothing", bare_printer, kMessages, 0, 0, {}},
      {"with the library's, beside that", our_printer, kMessages, 2, 0, {}},
      {"with a model of BlockCanary's, beside that", blockcanarys_printer, kMessages, 2, 0, {}},
  };
  /* The compilers of the VM come first. */
  bench::measure(rows, 15);
  for (bench::Candidate &row : rows) {
    row.rounds.clear();
  }
  bench::measure(rows, kRounds);
  bool is_kept = bench::print(rows);
  bc_loop_stats stats = {};
  stats.struct_size = sizeof stats;
  CHECK_OK(bc_loop_stats_get(marks, &stats));
  CHECK(stats.dispatches >= kMessages * kRounds, "%llu dispatches", static_cast<unsigned long long>(stats.dispatches));
  CHECK(is_kept, "above the bar");
  CHECK_OK(bc_uninstall());
}

/* What the VM complains of, for whoever looks for complaints: a call while an exception is pending. */
void call_wrongly(JNIEnv *env, jint) {
  env->ThrowNew(env->FindClass("dev/blockcanary/test/Messages$Pending"), "stays");
  env->FindClass("java/lang/Object");
}

void planted(void) {
  vm_begin();
  on_step = call_wrongly;
  CHECK(app_truth("catches", 1), "no exception came through");
}

}  // namespace

CASES({"probed", probed}, {"marked", marked}, {"printers", printers}, {"from_detached", from_detached},
      {"from_attached", from_attached}, {"from_library", from_library}, {"in_vain", in_vain}, {"thrown", thrown},
      {"refused", refused}, {"called_back", called_back}, {"vm_gone", vm_gone}, {"lives", lives}, {"faced", faced},
      {"killed", killed}, {"wrapped", wrapped}, {"wrapped_lives", wrapped_lives}, {"within", within},
      {"left_within", left_within}, {"climbed", climbed}, {"throwing", throwing}, {"idle_after", idle_after}, {"odd_names", odd_names},
      {"other_loader", other_loader}, {"rewatched", rewatched}, {"deep", deep}, {"changed_within", changed_within},
      {"toggled", toggled}, {"shared", shared},
      {"face_misused", face_misused}, {"cycles", cycles}, {"racing", racing}, {"costs", costs}, {"planted", planted})
