package io.semel.redisson;

import java.lang.reflect.Method;
import org.redisson.client.RedisClientConfig;
import org.redisson.config.Config;

/** Options of Redisson that claims cannot keep. Their getters differ between its releases. */
final class RedissonOptions {
  private static final String[] MODES = {"getSingleServerConfig", "getClusterServersConfig",
      "getSentinelServersConfig", "getMasterSlaveServersConfig", "getReplicatedServersConfig"};

  private RedissonOptions() {}

  /** @throws IllegalArgumentException that names the option */
  static void check(Config config, RedisClientConfig own) {
    checkMapper(read(config, "getNameMapper"));
    Object database = null;
    for (String each : MODES) {
      Object mode = read(config, each);
      if (mode == null) continue;
      checkMapper(read(mode, "getNameMapper"));
      if (database == null) database = read(mode, "getDatabase");
    }
    if (own != null && database != null && !database.equals(own.getDatabase())) {
      throw new IllegalArgumentException("database: Redisson's is " + database
          + ", that of the connections for waits is " + own.getDatabase());
    }
  }

  private static void checkMapper(Object mapper) {
    if (mapper == null || mapper.getClass().getSimpleName().equals("DefaultNameMapper")) return;
    throw new IllegalArgumentException("nameMapper: keys of claims are not mapped, so " + mapper
        .getClass().getName() + " would be ignored; make a Redisson without one for Semel");
  }

  private static Object read(Object from, String getter) {
    for (Class<?> type = from.getClass(); type != null; type = type.getSuperclass()) {
      try {
        Method method = type.getDeclaredMethod(getter);
        method.setAccessible(true);
        return method.invoke(from);
      } catch (ReflectiveOperationException | RuntimeException none) {
        continue;
      }
    }
    return null;
  }
}
