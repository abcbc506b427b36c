package dev.blockcanary;

import android.os.Looper;
import android.os.MessageQueue;
import android.util.Printer;
import dalvik.annotation.optimization.CriticalNative;

/**
 * What the native library has in the main Looper: a message that is run there once, and in precise mode the Looper's
 * Printer, which marks begin and end of each message and calls the Printer that was there before as if it were not there
 * itself. The library finds this class and its members by their names.
 */
final class Hook implements Printer, Runnable, MessageQueue.IdleHandler {
    /** Each message is marked; otherwise the Looper is watched by a heartbeat and there is no Printer. */
    static volatile boolean precise;
    /** The queue's idle handler while messages are marked; null while they are not. */
    static volatile Hook watching;
    /** Of the message that runs; read when it is late. */
    static volatile String line;

    /** One of these is being told of a message: it marks, and those that it leads to do not. */
    private static boolean told;

    /**
     * The Printer that was there before this one. Each has its own: one that others have put Printers over is called by
     * them for as long as they like, also when the library has gone.
     */
    private final Printer previous;
    /** A Printer that was put in over this one may call it, and be called by it. */
    private boolean inside;
    /** The same of other threads than the main one: a Printer that was put over this one may be that of their Loopers, too. */
    private final ThreadLocal<Boolean> insideElsewhere = new ThreadLocal<>();
    private final Thread main = Looper.getMainLooper().getThread();

    Hook(Printer previous) {
        this.previous = previous;
    }

    @Override
    public void run() {
        watch();
    }

    @Override
    public void println(String text) {
        if (Thread.currentThread() != main) {
            pass(text);
            return;
        }
        if (inside) {
            return;
        }
        boolean marks = !told && watching != null && text != null;
        boolean wasTold = told;
        inside = told = true;
        try {
            if (marks && text.startsWith(">")) {
                line = text;
                begin();
            }
            if (previous != null) {
                previous.println(text);
            }
        } finally {
            if (marks && text.startsWith("<")) {
                end();
            }
            inside = false;
            told = wasTold;
        }
    }

    /** A message of another thread's, which is not watched by this. */
    private void pass(String text) {
        if (previous == null || insideElsewhere.get() != null) {
            return;
        }
        insideElsewhere.set(true);
        try {
            previous.println(text);
        } finally {
            insideElsewhere.remove();
        }
    }

    /** The queue has no message that is due, so none runs: one that has thrown has told of no end. */
    @Override
    public boolean queueIdle() {
        boolean stays = watching == this;
        if (stays) {
            end();
        }
        return stays;
    }

    /** Watches the calling thread, the main one. */
    private static native void watch();

    /** A message begins, and the one before has ended in whichever way. */
    @CriticalNative
    private static native void begin();

    /** It ends, unless none has begun: who is put in within a message hears of its end first. */
    @CriticalNative
    private static native void end();
}
