package dev.blockcanary.sample;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.content.Context;
import android.os.Build;
import android.os.Handler;
import android.os.Looper;
import dev.blockcanary.Block;
import dev.blockcanary.BlockCanary;
import java.util.ArrayList;
import java.util.List;

/** Keeps what the library tells, and notifies of each block once: when it has ended, or hangs, or has ended in a kill. */
final class Blocks implements BlockCanary.Listener {
    private static final String CHANNEL = "blocks";

    private final Context context;
    private final Handler main = new Handler(Looper.getMainLooper());
    private final List<Block> told = new ArrayList<>();
    private Runnable watcher;

    Blocks(Context context) {
        this.context = context;
    }

    /** On a thread of the library's own. */
    @Override
    public void onBlock(Block block) {
        if (block.state == Block.ONGOING) {
            return;
        }
        notify(block);
        main.post(() -> {
            // One that was told as a hang is told once more when it ends.
            for (int i = told.size() - 1; i >= 0; i--) {
                if (told.get(i).id == block.id) {
                    told.remove(i);
                }
            }
            told.add(block);
            if (watcher != null) {
                watcher.run();
            }
        });
    }

    /** On the main thread: all of them, in order. */
    List<Block> all() {
        return told;
    }

    /** On the main thread: who wants to know when there are more; null for nobody. */
    void watch(Runnable whoever) {
        watcher = whoever;
    }

    static String title(Block block) {
        String[] states = {"", "goes on", "hangs", "ended", "was killed"};
        return block.timeMs + " ms, " + states[block.state] + ": " + (block.what == null ? "main thread" : block.what);
    }

    private void notify(Block block) {
        NotificationManager manager = (NotificationManager) context.getSystemService(Context.NOTIFICATION_SERVICE);
        Notification.Builder builder;
        if (Build.VERSION.SDK_INT >= 26) {
            manager.createNotificationChannel(
                    new NotificationChannel(CHANNEL, "Blocks", NotificationManager.IMPORTANCE_DEFAULT));
            builder = new Notification.Builder(context, CHANNEL);
        } else {
            builder = new Notification.Builder(context);
        }
        builder.setSmallIcon(android.R.drawable.ic_dialog_alert).setContentTitle(title(block));
        manager.notify((int) block.id, builder.build());
    }
}
