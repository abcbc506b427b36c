package dev.blockcanary;

import android.content.Context;
import android.content.pm.PackageInfo;
import android.content.pm.PackageManager;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** Watches the main thread of an app: <code>BlockCanary.install(context, config).start()</code>. */
public final class BlockCanary {
    /** Is told of blocks, on a thread of the library's own: never on the main one. */
    public interface Listener {
        void onBlock(Block block);
    }

    private static volatile Listener listener;
    private static BlockCanary instance;

    private BlockCanary() {}

    /**
     * Makes the library ready; a second call changes nothing.
     *
     * @throws IllegalArgumentException if a duration is negative
     * @throws IllegalStateException if the native library refuses; the log says why
     * @throws UnsatisfiedLinkError if there is no library of the name that the configuration gives, or it lacks the native
     *     half of this
     */
    public static synchronized BlockCanary install(Context context, Config config) {
        if (instance != null) {
            return instance;
        }
        Objects.requireNonNull(context, "context");
        Objects.requireNonNull(config, "config");
        int threshold = duration("provideBlockThreshold", config.provideBlockThreshold());
        int interval = duration("provideDumpInterval", config.provideDumpInterval());
        String path = Objects.requireNonNull(config.providePath(), "providePath");
        String library = config.provideLibrary();
        if (library != null) {
            System.loadLibrary(library);
        }
        String version = null;
        String code = null;
        try {
            PackageInfo info = context.getPackageManager().getPackageInfo(context.getPackageName(), 0);
            version = info.versionName;
            code = Integer.toString(info.versionCode);
        } catch (PackageManager.NameNotFoundException unknown) {
            // Reports lack it.
        }
        File folder = new File(context.getFilesDir(), path);
        String[] words = {
            folder.getPath(), config.provideQualifier(), version, code, config.provideUid(), config.provideNetworkType()
        };
        byte[][] bytes = new byte[words.length][];
        for (int i = 0; i < words.length; i++) {
            bytes[i] = words[i] == null ? null : (words[i] + '\0').getBytes(StandardCharsets.UTF_8);
        }
        long seconds = Math.max(0, config.provideMonitorDuration()) * 3600L;
        check(nativeInstall(threshold, interval, seconds, bytes));
        Hook.precise = config.isPrecise();
        instance = new BlockCanary();
        return instance;
    }

    /** The one that was installed; null before. */
    public static synchronized BlockCanary get() {
        return instance;
    }

    /** Begins to watch. From any thread; if it is not the main one, that is waited for, two seconds at most. */
    public BlockCanary start() {
        check(nativeStart());
        return this;
    }

    /** Stops watching, until the next start. */
    public BlockCanary stop() {
        check(nativeStop());
        return this;
    }

    /** Who is told of blocks; null: nobody. */
    public static void setListener(Listener told) {
        listener = told;
    }

    /** Called by the native library. */
    private static void onBlock(long id, int state, long timeMs, byte[] what, byte[] path, byte[] text) {
        Listener told = listener;
        if (told != null) {
            told.onBlock(new Block(id, state, timeMs, string(what), string(path), string(text)));
        }
    }

    private static String string(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static int duration(String name, int ms) {
        if (ms < 0) {
            throw new IllegalArgumentException("blockcanary: " + name + ": " + ms);
        }
        return ms;
    }

    private static void check(String refusal) {
        if (refusal != null) {
            throw new IllegalStateException("blockcanary: " + refusal);
        }
    }

    /** Each gives null, or why not. */
    private static native String nativeInstall(int thresholdMs, int intervalMs, long seconds, byte[][] words);

    private static native String nativeStart();

    private static native String nativeStop();
}
