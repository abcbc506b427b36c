package dev.blockcanary;

/**
 * What an app wants of the library. Each method has a name that BlockCanary gave to it; override what is to be otherwise. It
 * is asked once, by {@link BlockCanary#install}.
 */
public class Config {
    /** Your own word for the build, for instance the version and the channel; null for none. */
    public String provideQualifier() {
        return null;
    }

    /** Who the user is; null for nobody. */
    public String provideUid() {
        return null;
    }

    /** The network's kind; null where you do not know. */
    public String provideNetworkType() {
        return null;
    }

    /** Hours to watch for; 0 and less: for ever. */
    public int provideMonitorDuration() {
        return 0;
    }

    /** A message that takes longer is a block; 0: the library's own limit, which is this one. Milliseconds. */
    public int provideBlockThreshold() {
        return 1000;
    }

    /** Between two samples of the thread; 0: a quarter of the threshold. Milliseconds. */
    public int provideDumpInterval() {
        return 0;
    }

    /** Where reports are stored: a folder's name below the app's own files. */
    public String providePath() {
        return "blockcanary";
    }

    /** The native library that the other half of this is linked into; null if it is loaded already. */
    public String provideLibrary() {
        return "blockcanary";
    }

    /** Mark each message by a Printer, so that blocks are called by their message; otherwise there is a heartbeat. */
    public boolean isPrecise() {
        return false;
    }
}
