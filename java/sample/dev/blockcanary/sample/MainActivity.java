package dev.blockcanary.sample;

import android.app.Activity;
import android.app.AlertDialog;
import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.os.Bundle;
import android.os.SystemClock;
import android.widget.ArrayAdapter;
import android.widget.Button;
import android.widget.LinearLayout;
import android.widget.ListView;
import dev.blockcanary.Block;
import dev.blockcanary.BlockCanary;
import dev.blockcanary.Config;
import java.util.ArrayList;
import java.util.List;

/** A button that blocks the main thread; a notification, a list and a page for each block, by a listener. */
public final class MainActivity extends Activity {
    private static final String CHANNEL = "blocks";

    private final List<Block> blocks = new ArrayList<>();
    private ArrayAdapter<String> titles;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        titles = new ArrayAdapter<>(this, android.R.layout.simple_list_item_1);
        Button button = new Button(this);
        button.setText("Block for two seconds");
        button.setOnClickListener(view -> SystemClock.sleep(2000));
        ListView list = new ListView(this);
        list.setAdapter(titles);
        list.setOnItemClickListener((parent, view, place, id) -> show(blocks.get(place)));
        LinearLayout page = new LinearLayout(this);
        page.setOrientation(LinearLayout.VERTICAL);
        page.addView(button);
        page.addView(list);
        setContentView(page);

        BlockCanary.setListener(this::onBlock);
        BlockCanary.install(getApplicationContext(), new Config() {
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

    @Override
    protected void onDestroy() {
        BlockCanary.setListener(null);
        super.onDestroy();
    }

    /** On a thread of the library's. */
    private void onBlock(Block block) {
        if (block.state != Block.ENDED) {
            return;
        }
        String title = block.timeMs + " ms: " + (block.what == null ? "main thread" : block.what);
        NotificationManager manager = getSystemService(NotificationManager.class);
        manager.createNotificationChannel(
                new NotificationChannel(CHANNEL, "Blocks", NotificationManager.IMPORTANCE_DEFAULT));
        manager.notify((int) block.id, new Notification.Builder(this, CHANNEL)
                .setSmallIcon(android.R.drawable.ic_dialog_alert)
                .setContentTitle(title)
                .build());
        runOnUiThread(() -> {
            blocks.add(block);
            titles.add(title);
        });
    }

    private void show(Block block) {
        new AlertDialog.Builder(this).setMessage(block.text).show();
    }
}
