package dev.blockcanary;

/** A block of the main thread, as a listener is told of it. */
public final class Block {
    /** It has passed its limit and goes on. */
    public static final int ONGOING = 1;
    /** It has gone on for so long that it is a hang. */
    public static final int HANG = 2;
    /** It is over. */
    public static final int ENDED = 3;
    /** An earlier process was killed in it. */
    public static final int KILLED = 4;

    /** Names the block in all its states, of which one is told at a time. */
    public final long id;
    /** One of the above. */
    public final int state;
    /** Duration, so far or in all, milliseconds. */
    public final long timeMs;
    /** The message; null where that is not known. */
    public final String what;
    /** The report's file; null if there is none. */
    public final String path;
    /** The report, in BlockCanary's own form. */
    public final String text;

    Block(long id, int state, long timeMs, String what, String path, String text) {
        this.id = id;
        this.state = state;
        this.timeMs = timeMs;
        this.what = what;
        this.path = path;
        this.text = text;
    }
}
