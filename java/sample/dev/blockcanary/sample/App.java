package dev.blockcanary.sample;

import android.app.Application;
import dev.blockcanary.BlockCanary;
import dev.blockcanary.Config;

/** The library is installed with the process, before any activity can block, and outlives them all. */
public final class App extends Application {
    /** The app's own native library; a C file of it says <code>#include &lt;blockcanary_jni.c&gt;</code>. */
    private static final String LIBRARY = "sample";

    private final Blocks blocks = new Blocks(this);

    @Override
    public void onCreate() {
        super.onCreate();
        // Before the start, which tells of blocks in which an earlier process was killed.
        BlockCanary.setListener(blocks);
        BlockCanary.install(this, new Config() {
            @Override
            public String provideLibrary() {
                return LIBRARY;
            }

            @Override
            public int provideBlockThreshold() {
                return 500;
            }

            @Override
            public boolean isPrecise() {
                return true;
            }
        }).start();
    }

    /** What has blocked so far. */
    Blocks blocks() {
        return blocks;
    }
}
