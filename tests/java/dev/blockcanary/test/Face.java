package dev.blockcanary.test;

import android.app.ApplicationPackageManager;
import android.content.Context;
import android.content.ContextWrapper;
import android.content.pm.PackageInfo;
import android.content.pm.PackageManager;
import android.os.Looper;
import dev.blockcanary.Block;
import dev.blockcanary.BlockCanary;
import dev.blockcanary.Config;
import java.io.File;
import java.util.concurrent.atomic.AtomicIntegerArray;

/** An app that uses the library as its Java face has it. */
final class Face {
    private static final AtomicIntegerArray states = new AtomicIntegerArray(8);

    /** What an app has of the system. */
    static final class App extends ContextWrapper {
        App() {
            super(null);
        }

        @Override
        public PackageManager getPackageManager() {
            return new ApplicationPackageManager(null, null) {
                @Override
                public PackageInfo getPackageInfo(String name, int flags) {
                    PackageInfo info = new PackageInfo();
                    info.versionName = "1.2 \u00e4";
                    info.versionCode = 12;
                    return info;
                }
            };
        }

        @Override
        public String getPackageName() {
            return "dev.blockcanary.test";
        }

        @Override
        public File getFilesDir() {
            return new File("/dev/shm");
        }
    }

    static int install(int process) {
        System.load(System.getProperty("test.jni"));
        Context app = new App();
        BlockCanary.setListener(Face::onBlock);
        BlockCanary canary = BlockCanary.install(app, new Config() {
            @Override
            public int provideBlockThreshold() {
                return 200;
            }

            @Override
            public String providePath() {
                return "bc-java-" + process;
            }

            @Override
            public String provideUid() {
                return "someone";
            }

            @Override
            public String provideLibrary() {
                return null;
            }

            @Override
            public boolean isPrecise() {
                return true;
            }
        });
        canary.start();
        return BlockCanary.get() == canary && BlockCanary.install(app, null) == canary ? 0 : 1;
    }

    private static void onBlock(Block block) {
        boolean isWhole = Looper.myLooper() == null
                && "dev.blockcanary.test.Messages$Work what=7".equals(block.what)
                && block.timeMs >= 200
                && new File(block.path).length() > 0
                && block.text.contains("versionName = 1.2 \u00e4\r\n")
                && block.text.contains("versionCode = 12\r\n")
                && block.text.contains("uid = someone\r\n")
                && block.text.contains("dev.blockcanary.test.Messages.block(Messages.java:");
        if (isWhole) {
            states.incrementAndGet(block.state);
        }
        // What a listener throws ends with it.
        throw new IllegalStateException("of the listener's");
    }

    static int told(int state) {
        return states.get(state);
    }

    private Face() {}
}
