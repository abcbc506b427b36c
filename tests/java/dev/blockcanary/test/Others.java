package dev.blockcanary.test;

import android.os.Handler;
import android.os.HandlerThread;
import android.os.Looper;
import android.os.Message;
import android.util.Printer;
import java.lang.reflect.Field;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.concurrent.CountDownLatch;

/** Whoever else has to do with the main Looper: Printers of other libraries, and messages with odd names. */
final class Others {
    /** Is told of each message's begin and end in turn, once; calls the Printer that was there before, as many do. */
    static final class Strict implements Printer {
        private final Printer before;
        private boolean open;
        private int lines;
        private int wrong;

        Strict(Printer before) {
            this.before = before;
        }

        @Override
        public void println(String line) {
            boolean begins = line.startsWith(">");
            if (begins == open) {
                wrong++;
            }
            open = begins;
            lines += begins ? 1 : 0;
            if (before != null) {
                before.println(line);
            }
        }
    }

    /** Puts itself on top of whoever is there, with each message, and calls that one. */
    static final class Climber implements Printer {
        private Printer below;

        @Override
        public void println(String line) {
            if (below != null) {
                below.println(line);
            }
        }

        void climb() throws ReflectiveOperationException {
            Printer top = top();
            if (top != this) {
                below = top;
                Looper.getMainLooper().setMessageLogging(this);
            }
        }
    }

    /** Throws what it is asked to. */
    static final class Thrower implements Printer {
        private final char at;

        Thrower(char at) {
            this.at = at;
        }

        @Override
        public void println(String line) {
            if (line.charAt(0) == at) {
                Looper.getMainLooper().setMessageLogging(null);
                throw new Messages.Quit();
            }
        }
    }

    private static final Strict[] printers = new Strict[8];
    private static final Climber climber = new Climber();

    static Printer top() throws ReflectiveOperationException {
        Field field = Looper.class.getDeclaredField("mLogging");
        field.setAccessible(true);
        return (Printer) field.get(Looper.getMainLooper());
    }

    /** The Printer of this number is put in the place of the one that is there, and forgets it. */
    static int replace(int number) {
        printers[number] = new Strict(null);
        Looper.getMainLooper().setMessageLogging(printers[number]);
        return 0;
    }

    /** It is put over the one that is there. */
    static int wrap(int number) throws ReflectiveOperationException {
        printers[number] = new Strict(top());
        Looper.getMainLooper().setMessageLogging(printers[number]);
        return 0;
    }

    static int climb(int nothing) throws ReflectiveOperationException {
        climber.climb();
        return 0;
    }

    static int thrower(int at) {
        Looper.getMainLooper().setMessageLogging(new Thrower((char) at));
        return 0;
    }

    /** Messages that it was told of; negative if begins and ends did not come in turn. */
    static int lines(int number) {
        return printers[number].wrong == 0 ? printers[number].lines : -printers[number].wrong;
    }

    /** Says of itself what it was given. */
    private static final class Named implements Runnable {
        private final String name;

        Named(String name) {
            this.name = name;
        }

        @Override
        public void run() {
            Messages.block(500);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    private static final class Überläufer𝒳 extends Handler {
        Überläufer𝒳() {
            super(Looper.getMainLooper());
        }
    }

    private static String repeat(String text, int times) {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < times; i++) {
            all.append(text);
        }
        return all.toString();
    }

    /** A message that blocks, with a callback that says odd things of itself. */
    static int odd(int which) {
        String[] names = {
            "} {[\"]: \\ \u0000\n\r\t: 5",
            repeat("long, ", 400) + "pin: 123456",
            // What is looked at of a line may end within.
            repeat("pin: 1234567890 ", 400),
            repeat("jane@abcdef01", 400),
            "\ud83d\ude00 \ud83d",
            "",
            "android.os.Handler@",
        };
        Handler handler = new Überläufer𝒳();
        Message message = Message.obtain(handler, new Named(names[which]));
        message.what = -77;
        handler.sendMessage(message);
        return names.length;
    }

    static int later(int ms) {
        Messages.work.sendEmptyMessageDelayed(Messages.QUIT, ms);
        return 0;
    }

    /** The main thread's loader is another one, which has classes of its own with the same names. */
    static int loader(int nothing) throws Exception {
        String[] path = System.getProperty("java.class.path").split(":");
        URL[] urls = {new java.io.File(path[0] + "/").toURI().toURL()};
        Thread.currentThread().setContextClassLoader(new URLClassLoader(urls, Looper.class.getClassLoader().getParent()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (!name.startsWith("dev.blockcanary.")) {
                    return Looper.class.getClassLoader().loadClass(name);
                }
                Class<?> known = findLoadedClass(name);
                return known != null ? known : findClass(name);
            }
        });
        return 0;
    }

    /** The stack is this deep when it blocks, in functions whose names are so long that not all are kept. */
    static int deep(int depth) {
        return deepBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelow(depth);
    }

    private static int deepBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelow(int depth) {
        if (depth > 0) {
            return deepBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelowAndBelow(depth - 1) + 1;
        }
        Messages.block(500);
        return 0;
    }

    static int overflow(int nothing) {
        try {
            return overflow(nothing) + 1;
        } catch (StackOverflowError expected) {
            return 0;
        }
    }

    static int garbage(int ms) {
        long end = System.nanoTime() + ms * 1_000_000L;
        int total = 0;
        while (System.nanoTime() < end) {
            total += new byte[1 << 16].length & 1;
        }
        return total;
    }

    /** How many the main queue has. */
    static int handlers(int nothing) throws ReflectiveOperationException {
        Field field = android.os.MessageQueue.class.getDeclaredField("mIdleHandlers");
        field.setAccessible(true);
        return ((java.util.List<?>) field.get(Looper.getMainLooper().getQueue())).size();
    }

    /** Calls the one that was there before, from whichever thread tells it of a message. */
    static final class Shared implements Printer {
        private final Printer before;

        Shared(Printer before) {
            this.before = before;
        }

        @Override
        public void println(String line) {
            before.println(line);
        }
    }

    private static HandlerThread worker;

    /** One Printer of the main Looper and of another thread's. */
    static int share(int nothing) throws ReflectiveOperationException {
        Printer shared = new Shared(top());
        Looper.getMainLooper().setMessageLogging(shared);
        worker = new HandlerThread("worker");
        worker.start();
        worker.getLooper().setMessageLogging(shared);
        return 0;
    }

    /** That thread has so many messages, and is waited for. */
    static int busy(int messages) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(messages + 1);
        Handler handler = new Handler(worker.getLooper());
        for (int i = 0; i <= messages; i++) {
            handler.post(done::countDown);
        }
        done.await();
        return 0;
    }

    private Others() {}
}
