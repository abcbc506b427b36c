package dev.blockcanary;

import android.util.Printer;
import dalvik.annotation.optimization.CriticalNative;

/**
 * What the native library has in the main Looper: a message that is run there once, and in precise mode the Looper's
 * Printer, which marks begin and end of each message and calls the Printer that was there before as if it were not there
 * itself. The library finds this class and its members by their names.
 */
final class Hook implements Printer, Runnable {
    /** Each message is marked; otherwise the Looper is watched by a heartbeat and there is no Printer. */
    static volatile boolean precise;
    /** The library watches. */
    static volatile boolean on;
    /** The Printer that was there before. */
    static volatile Printer previous;
    /** Of the message that runs; read when it is late. */
    static volatile String line;

    /** A message has begun. Who is put in within a message hears of its end first. */
    private boolean open;
    /** A Printer that was put in over this one may call it, and be called by it. */
    private boolean inside;

    Hook() {}

    @Override
    public void run() {
        watch();
    }

    @Override
    public void println(String text) {
        if (inside || text == null) {
            return;
        }
        inside = true;
        try {
            if (on && text.startsWith(">")) {
                if (open) {
                    // It has thrown, and somebody has caught that and runs the Looper on.
                    end();
                }
                line = text;
                open = true;
                begin();
            }
            Printer next = previous;
            if (next != null) {
                next.println(text);
            }
        } finally {
            if (open && text.startsWith("<")) {
                open = false;
                if (on) {
                    end();
                }
            }
            inside = false;
        }
    }

    /** Watches the calling thread, the main one. */
    private static native void watch();

    @CriticalNative
    private static native void begin();

    @CriticalNative
    private static native void end();
}
