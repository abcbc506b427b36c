package dev.blockcanary.test;

import dev.blockcanary.BlockCanary;
import dev.blockcanary.Config;

/** An app that uses the library's Java face wrongly. */
final class Misuse {
    private static int threshold = 200;
    private static int interval;
    private static int hours;
    private static String path;
    private static String qualifier;

    private static final class Odd extends Config {
        @Override
        public int provideBlockThreshold() {
            return threshold;
        }

        @Override
        public int provideDumpInterval() {
            return interval;
        }

        @Override
        public int provideMonitorDuration() {
            return hours;
        }

        @Override
        public String providePath() {
            return path;
        }

        @Override
        public String provideQualifier() {
            return qualifier;
        }

        @Override
        public String provideLibrary() {
            return null;
        }

        @Override
        public boolean isPrecise() {
            return true;
        }
    }

    private static boolean isRefused(String naming) {
        try {
            BlockCanary.install(new Face.App(), new Odd());
        } catch (RuntimeException refusal) {
            System.err.println(refusal);
            return BlockCanary.get() == null && String.valueOf(refusal.getMessage()).contains(naming);
        }
        return false;
    }

    /** 0, or which one is not refused as it should be. */
    static int refusals(int process) {
        System.load(System.getProperty("test.jni"));
        int[] odd = {-1, Integer.MIN_VALUE, Integer.MAX_VALUE};
        String good = "bc-java-" + process;
        path = good;
        for (int value : odd) {
            threshold = value;
            // The library's own bounds are told by its log.
            if (!isRefused(value < 0 ? "provideBlockThreshold: " + value : "invalid argument")) {
                return 1;
            }
            threshold = 200;
            interval = value;
            if (!isRefused(value < 0 ? "provideDumpInterval: " + value : "invalid argument")) {
                return 2;
            }
            interval = 0;
        }
        path = null;
        if (!isRefused("providePath")) {
            return 3;
        }
        path = good;
        try {
            BlockCanary.install(null, new Odd());
            return 4;
        } catch (RuntimeException refusal) {
            System.err.println(refusal);
            if (!String.valueOf(refusal.getMessage()).contains("context")) {
                return 5;
            }
        }
        try {
            BlockCanary.install(new Face.App(), null);
            return 6;
        } catch (RuntimeException refusal) {
            System.err.println(refusal);
            if (!String.valueOf(refusal.getMessage()).contains("config")) {
                return 7;
            }
        }
        return BlockCanary.get() == null ? 0 : 8;
    }

    private static volatile int told;

    private static int descend(int depth) {
        return descend(depth + 1) + 1;
    }

    /** What is odd but fine. */
    static int accepted(int process) {
        path = "bc-java-" + process;
        hours = process % 2 == 0 ? Integer.MAX_VALUE : Integer.MIN_VALUE;
        qualifier = "a\u0000b \ud800 \ud83d\ude00 \r\nstack = x";
        BlockCanary.setListener(null);
        BlockCanary canary = BlockCanary.install(new Face.App(), new Odd());
        canary.stop().stop().start().start();
        BlockCanary.setListener(block -> {
            told++;
            if (told == 1) {
                // A listener may stop and start.
                canary.stop();
            } else if (told == 2) {
                // It has been taken for an end.
                descend(0);
            }
        });
        return 0;
    }

    static int told(int nothing) {
        return told;
    }

    static int restart(int nothing) {
        BlockCanary.get().start();
        return 0;
    }

    static int nobody(int nothing) {
        BlockCanary.setListener(null);
        return 0;
    }

    private Misuse() {}
}
