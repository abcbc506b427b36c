package dalvik.system;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;

/**
 * Stands for Android's: no Java VM but Android's own runs dex files. It takes the one that the library has in it, and no
 * other, and gives the class that this VM's compiler makes of the same source.
 */
public final class InMemoryDexClassLoader extends ClassLoader {
    private static final String NAME = "dev.blockcanary.Hook";
    public static volatile int made;

    public InMemoryDexClassLoader(ByteBuffer given, ClassLoader parent) throws IOException {
        super(parent == null ? getSystemClassLoader() : parent);
        byte[] bytes = new byte[given.remaining()];
        given.duplicate().get(bytes);
        if (!given.isDirect() || !Arrays.equals(bytes, Files.readAllBytes(Paths.get(System.getenv("TEST_DEX"))))) {
            throw new IOException("not the dex file");
        }
        made++;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals(NAME)) {
            return super.loadClass(name, resolve);
        }
        Class<?> known = findLoadedClass(name);
        return known != null ? known : defined();
    }

    private Class<?> defined() throws ClassNotFoundException {
        try (InputStream file = getSystemResourceAsStream("dev/blockcanary/Hook.class")) {
            byte[] bytes = new byte[1 << 16];
            int length = 0;
            for (int more; (more = file.read(bytes, length, bytes.length - length)) > 0; ) {
                length += more;
            }
            return defineClass(NAME, bytes, 0, length);
        } catch (IOException error) {
            throw new ClassNotFoundException(NAME, error);
        }
    }
}
