package dev.blockcanary.sample;

import android.Manifest;
import android.app.Activity;
import android.app.AlertDialog;
import android.os.Build;
import android.os.Bundle;
import android.os.SystemClock;
import android.widget.ArrayAdapter;
import android.widget.Button;
import android.widget.LinearLayout;
import android.widget.ListView;
import dev.blockcanary.Block;

/** A button that blocks the main thread, a list of the blocks and a page of each. */
public final class MainActivity extends Activity {
    private Blocks blocks;
    private ArrayAdapter<String> titles;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        blocks = ((App) getApplication()).blocks();
        titles = new ArrayAdapter<>(this, android.R.layout.simple_list_item_1);
        Button button = new Button(this);
        button.setText("Block for two seconds");
        button.setOnClickListener(view -> SystemClock.sleep(2000));
        ListView list = new ListView(this);
        list.setAdapter(titles);
        list.setOnItemClickListener((parent, view, place, id) -> show(blocks.all().get(place)));
        LinearLayout page = new LinearLayout(this);
        page.setOrientation(LinearLayout.VERTICAL);
        page.addView(button);
        page.addView(list);
        setContentView(page);
        if (Build.VERSION.SDK_INT >= 33) {
            requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS}, 0);
        }
    }

    @Override
    protected void onStart() {
        super.onStart();
        blocks.watch(this::list);
        list();
    }

    @Override
    protected void onStop() {
        blocks.watch(null);
        super.onStop();
    }

    private void list() {
        titles.clear();
        for (Block block : blocks.all()) {
            titles.add(Blocks.title(block));
        }
    }

    private void show(Block block) {
        new AlertDialog.Builder(this).setMessage(block.text).show();
    }
}
