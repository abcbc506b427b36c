package dev.blockcanary.test;

import android.os.Handler;
import android.os.HandlerThread;
import android.os.Looper;
import android.os.SystemClock;
import android.util.Printer;

/** Printers whose costs are compared. */
final class Costs {
    /**
     * What BlockCanary 1.5 does with each line, after its LooperMonitor and samplers: three clocks, and two samplers that are
     * sent to another thread at the begin and taken back at the end.
     */
    private static final class Model implements Printer {
        private static final int THRESHOLD_MS = 1000;

        private final Handler samplers;
        private final Runnable stack = () -> {};
        private final Runnable cpu = () -> {};
        private boolean begun;
        private long startMs;
        private long startThreadMs;
        private long blocks;

        Model() {
            HandlerThread thread = new HandlerThread("samplers");
            thread.setDaemon(true);
            thread.start();
            samplers = new Handler(thread.getLooper());
        }

        @Override
        public void println(String line) {
            if (!begun) {
                startMs = System.currentTimeMillis();
                startThreadMs = SystemClock.currentThreadTimeMillis();
                begun = true;
                samplers.removeCallbacks(stack);
                samplers.postDelayed(stack, THRESHOLD_MS * 8 / 10);
                samplers.removeCallbacks(cpu);
                samplers.postDelayed(cpu, THRESHOLD_MS * 8 / 10);
                return;
            }
            begun = false;
            if (System.currentTimeMillis() - startMs > THRESHOLD_MS && startThreadMs >= 0) {
                blocks++;
            }
            samplers.removeCallbacks(stack);
            samplers.removeCallbacks(cpu);
        }
    }

    private static Printer ours;
    private static final Printer model = new Model();
    private static final Printer bare = line -> {};

    /** The Printer that is there now is the library's. */
    static void keep() throws ReflectiveOperationException {
        java.lang.reflect.Field field = Looper.class.getDeclaredField("mLogging");
        field.setAccessible(true);
        ours = (Printer) field.get(Looper.getMainLooper());
    }

    static void print(int which) {
        Printer[] printers = {null, bare, ours, model};
        Looper.getMainLooper().setMessageLogging(printers[which]);
    }

    private Costs() {}
}
