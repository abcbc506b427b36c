// A stand-in for AChoreographer, whose real one has a display behind it: frame callbacks from a timer in the calling
// thread's genuine looper, for tests only. What it keeps of the real one: callbacks are called once, by the thread that
// asked; a frame is begun only if somebody has asked; its time is when the display began it, however late the thread is.
//
// API_LEVEL says which functions there are.
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <utils/Looper.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "display.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Debian's header of these wants a compiler for Android.
struct AChoreographer;
typedef void (*AChoreographer_frameCallback)(long, void *);
typedef void (*AChoreographer_frameCallback64)(int64_t, void *);

struct AChoreographerFrameCallbackData {
  int64_t time_ns, period_ns;
};

typedef void (*VsyncCallback)(const AChoreographerFrameCallbackData *, void *);
typedef void (*RateCallback)(int64_t, void *);

namespace {

std::mutex lock;
std::vector<AChoreographer *> all;
int64_t period_ns = 16666667;
bool is_on = true;

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t(1000000000) + time.tv_nsec;
}

struct Callback {
  AChoreographer_frameCallback narrow;
  AChoreographer_frameCallback64 wide;
  VsyncCallback vsync;
  void *data;
};

struct Rate {
  RateCallback callback;
  void *data;
  int64_t told_ns;
};

}  // namespace

struct AChoreographer {
  explicit AChoreographer(const android::sp<android::Looper> &looper)
      : looper(looper), timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    looper->addFd(timer, 0, android::Looper::EVENT_INPUT, on_timer, this);
    std::lock_guard<std::mutex> held(lock);
    all.push_back(this);
  }

  ~AChoreographer() {
    std::lock_guard<std::mutex> held(lock);
    all.erase(std::find(all.begin(), all.end(), this));
    looper->removeFd(timer);
    close(timer);
  }

  void post(const Callback &callback) {
    std::lock_guard<std::mutex> held(lock);
    waiting.push_back(callback);
    schedule();
  }

  // Under the lock.
  void schedule() {
    if (is_on && !waiting.empty() && frame_ns == 0) {
      frame_ns = (now_ns() / period_ns + 1) * period_ns;
      itimerspec due = {};
      due.it_value.tv_sec = time_t(frame_ns / 1000000000);
      due.it_value.tv_nsec = long(frame_ns % 1000000000);
      timerfd_settime(timer, TFD_TIMER_ABSTIME, &due, nullptr);
    }
  }

  static int on_timer(int fd, int, void *data) {
    uint64_t times;
    if (read(fd, &times, sizeof times) == sizeof times) {
      static_cast<AChoreographer *>(data)->begin_frame();
    }
    return 1;
  }

  void begin_frame() {
    std::vector<Callback> due;
    std::vector<Rate> untold;
    AChoreographerFrameCallbackData frame;
    {
      std::lock_guard<std::mutex> held(lock);
      due.swap(waiting);
      frame = {frame_ns, period_ns};
      frame_ns = 0;
      for (Rate &rate : rates) {
        if (rate.told_ns != period_ns) {
          rate.told_ns = period_ns;
          untold.push_back(rate);
        }
      }
    }
    for (const Rate &rate : untold) {
      rate.callback(rate.told_ns, rate.data);
    }
    for (const Callback &callback : due) {
      if (callback.vsync != nullptr) {
        callback.vsync(&frame, callback.data);
      } else if (callback.wide != nullptr) {
        callback.wide(frame.time_ns, callback.data);
      } else {
        callback.narrow(long(frame.time_ns), callback.data);
      }
    }
  }

  android::sp<android::Looper> looper;
  int timer;
  int64_t frame_ns = 0;  // of the frame that is to begin, 0: none is
  std::vector<Callback> waiting;
  std::vector<Rate> rates;
};

EXPORTED void display_set_period(int64_t ns) {
  std::lock_guard<std::mutex> held(lock);
  period_ns = ns;
}

EXPORTED void display_switch(bool on) {
  std::lock_guard<std::mutex> held(lock);
  is_on = on;
  for (AChoreographer *choreographer : all) {
    if (on) {
      choreographer->schedule();
    } else {
      itimerspec never = {};
      timerfd_settime(choreographer->timer, 0, &never, nullptr);
      choreographer->frame_ns = 0;
    }
  }
}

EXPORTED unsigned display_owes() {
  std::lock_guard<std::mutex> held(lock);
  size_t owed = 0;
  for (AChoreographer *choreographer : all) {
    owed += choreographer->waiting.size();
  }
  return unsigned(owed);
}

EXPORTED unsigned display_tells() {
  std::lock_guard<std::mutex> held(lock);
  size_t told = 0;
  for (AChoreographer *choreographer : all) {
    told += choreographer->rates.size();
  }
  return unsigned(told);
}

EXPORTED AChoreographer *AChoreographer_getInstance() {
  struct Owner {
    AChoreographer *choreographer = nullptr;
    ~Owner() { delete choreographer; }
  };
  static thread_local Owner owner;
  android::sp<android::Looper> looper = android::Looper::getForThread();
  if (owner.choreographer == nullptr && looper != nullptr) {
    owner.choreographer = new AChoreographer(looper);
  }
  return owner.choreographer;
}

EXPORTED void AChoreographer_postFrameCallback(AChoreographer *choreographer, AChoreographer_frameCallback callback,
                                               void *data) {
  choreographer->post({callback, nullptr, nullptr, data});
}

#if API_LEVEL >= 29
EXPORTED void AChoreographer_postFrameCallback64(AChoreographer *choreographer, AChoreographer_frameCallback64 callback,
                                                 void *data) {
  choreographer->post({nullptr, callback, nullptr, data});
}
#endif

#if API_LEVEL >= 30
EXPORTED void AChoreographer_registerRefreshRateCallback(AChoreographer *choreographer, RateCallback callback,
                                                         void *data) {
  std::lock_guard<std::mutex> held(lock);
  choreographer->rates.push_back({callback, data, 0});
}

EXPORTED void AChoreographer_unregisterRefreshRateCallback(AChoreographer *choreographer, RateCallback callback,
                                                           void *data) {
  std::lock_guard<std::mutex> held(lock);
  std::vector<Rate> &rates = choreographer->rates;
  auto is_it = [=](const Rate &rate) { return rate.callback == callback && rate.data == data; };
  rates.erase(std::remove_if(rates.begin(), rates.end(), is_it), rates.end());
}
#endif

#if API_LEVEL >= 33
EXPORTED void AChoreographer_postVsyncCallback(AChoreographer *choreographer, VsyncCallback callback, void *data) {
  choreographer->post({nullptr, nullptr, callback, data});
}

EXPORTED int64_t AChoreographerFrameCallbackData_getFrameTimeNanos(const AChoreographerFrameCallbackData *frame) {
  return frame->time_ns;
}

EXPORTED size_t AChoreographerFrameCallbackData_getFrameTimelinesLength(const AChoreographerFrameCallbackData *) {
  return 7;
}

EXPORTED int64_t AChoreographerFrameCallbackData_getFrameTimelineExpectedPresentationTimeNanos(
    const AChoreographerFrameCallbackData *frame, size_t index) {
  return frame->time_ns + int64_t(index + 2) * frame->period_ns;
}
#endif
