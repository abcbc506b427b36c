package dev.blockcanary.test;

import android.os.Handler;
import android.os.Looper;
import android.os.Message;
import android.util.Printer;
import dalvik.system.InMemoryDexClassLoader;

/** An app of Android's own Looper, Handler and MessageQueue. */
public final class Messages {
    static final int QUIT = 99;
    static final int THROW = 98;
    static final int NEXT = 97;

    private static int left;

    /** Thrown out of the main loop, which cannot be quit, by the wait for the next message. */
    static final class Quit extends RuntimeException {
        private static final long serialVersionUID = 1;

        Quit() {}

        Quit(String message) {
            super(message);
        }
    }

    /** What a native method leaves pending. */
    static final class Pending extends RuntimeException {
        private static final long serialVersionUID = 1;

        Pending(String message) {
            super(message);
        }
    }

    /** Handles messages by sleeping or by calling the test back. */
    static final class Work extends Handler {
        Work() {
            super(Looper.getMainLooper());
        }

        @Override
        public void handleMessage(Message message) {
            if (message.what == NEXT) {
                if (--left > 0) {
                    sendEmptyMessage(NEXT);
                } else {
                    leave();
                }
            } else if (message.what == QUIT) {
                leave();
            } else if (message.what == THROW) {
                throw new Quit();
            }
            if (message.arg1 > 0) {
                block(message.arg1);
            } else if (message.arg2 != 0) {
                call(message.arg2);
            }
        }
    }

    static void block(int ms) {
        long end = System.nanoTime() + ms * 1_000_000L;
        for (long left = ms; left > 0; left = (end - System.nanoTime()) / 1_000_000 + 1) {
            try {
                Thread.sleep(left);
            } catch (InterruptedException stays) {
                // Until its time is over.
            }
        }
    }

    /** Counts the lines that it is given. */
    static final class Counting implements Printer {
        volatile int begins;
        volatile int ends;

        @Override
        public void println(String line) {
            if (line.startsWith(">>>>> Dispatching to ")) {
                begins++;
            } else if (line.startsWith("<<<<< Finished to ")) {
                ends++;
            }
        }
    }

    static Work work;
    static final Counting first = new Counting();
    static final Counting second = new Counting();

    static native void call(int step);

    /** The next wait for a message throws. */
    static native void leave();

    /** The app has no class of the library's: its loader knows none. */
    static void withoutClass() {
        Thread.currentThread().setContextClassLoader(ClassLoader.getSystemClassLoader().getParent());
    }

    /** How often a class was defined from the bytes in the library. */
    static int embedded(int unused) {
        return InMemoryDexClassLoader.made;
    }

    static void prepare() {
        Looper.prepareMainLooper();
        work = new Work();
    }

    /** So many messages, of which every `each`-th blocks. */
    static void post(int count, int each, int ms) {
        for (int i = 1; i <= count; i++) {
            work.sendMessage(work.obtainMessage(7, each > 0 && i % each == 0 ? ms : 0, 0));
        }
    }

    /** A message that calls the test back. */
    static void step(int step) {
        work.sendMessage(work.obtainMessage(8, 0, step));
    }

    static void quit() {
        work.sendEmptyMessage(QUIT);
    }

    /** Runs so many messages, each of which sends the next one. */
    static void chain(int count) {
        left = count;
        work.sendEmptyMessage(NEXT);
        loop();
    }

    static void keep(int nothing) throws ReflectiveOperationException {
        Costs.keep();
    }

    static void cost(int which) {
        Costs.print(which);
    }

    /** A message that throws through the Looper. */
    static void fail() {
        work.sendEmptyMessage(THROW);
    }

    /** Runs messages until one is to quit. */
    static void loop() {
        try {
            Looper.loop();
        } catch (Quit expected) {
            // That is how it ends.
        }
    }

    static void print(int which) {
        Looper.getMainLooper().setMessageLogging(which == 1 ? first : which == 2 ? second : null);
    }

    /** Lines of both kinds that a Printer was given, as one number. */
    static int printed(int which) {
        Counting printer = which == 1 ? first : second;
        return printer.begins == printer.ends ? printer.begins : -1;
    }

    /** Whose Printer is there: 1, 2, 0 for nobody's, -1 for another one. */
    static int printer(int nothing) throws ReflectiveOperationException {
        java.lang.reflect.Field field = Looper.class.getDeclaredField("mLogging");
        field.setAccessible(true);
        Object printer = field.get(Looper.getMainLooper());
        return printer == first ? 1 : printer == second ? 2 : printer == null ? 0 : -1;
    }

    /** Threads that the VM knows. */
    static int threads(int nothing) {
        return Thread.getAllStackTraces().size();
    }

    static void precise(boolean precise) throws ReflectiveOperationException {
        java.lang.reflect.Field field = Class.forName("dev.blockcanary.Hook").getDeclaredField("precise");
        field.setAccessible(true);
        field.setBoolean(null, precise);
    }

    /** Calls back, and takes what that throws. */
    static boolean catches(int step) {
        try {
            call(step);
            return false;
        } catch (Pending expected) {
            return true;
        }
    }

    /** The app installs the library by its Java face. */
    static int face(int process) {
        return Face.install(process);
    }

    /** Blocks that a listener was told of in this state, with all that belongs to them. */
    static int told(int state) {
        return Face.told(state);
    }

    private Messages() {}
}
