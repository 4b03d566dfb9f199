package io.semel.tests;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** A name server and a broker on loopback, with small files, and a second between deliveries. */
final class RocketBroker implements AutoCloseable {
  private static final int FILE_BYTES = 8 << 20;
  private final Path folder = Files.createTempDirectory("semel-rocketmq-");
  private final NamesrvController names;
  private final BrokerController broker;
  private final String address;

  RocketBroker() throws Exception {
    // As its own main program does: the name server keeps no topics of brokers without a version.
    System.setProperty(RemotingCommand.REMOTING_VERSION_KEY,
        Integer.toString(MQVersion.CURRENT_VERSION));
    NettyServerConfig namesServer = new NettyServerConfig();
    namesServer.setListenPort(freePort());
    address = "127.0.0.1:" + namesServer.getListenPort();
    NamesrvConfig namesConfig = new NamesrvConfig();
    namesConfig.setRocketmqHome(folder.toString());
    namesConfig.setKvConfigPath(folder.resolve("kv.json").toString());
    names = new NamesrvController(namesConfig, namesServer);
    if (!names.initialize()) throw new IllegalStateException("no name server");
    names.start();
    BrokerConfig config = new BrokerConfig();
    config.setBrokerIP1("127.0.0.1");
    config.setBrokerIP2("127.0.0.1");
    config.setNamesrvAddr(address);
    config.setRocketmqHome(folder.toString());
    NettyServerConfig server = new NettyServerConfig();
    server.setListenPort(freePair());
    MessageStoreConfig store = new MessageStoreConfig();
    store.setStorePathRootDir(folder.resolve("store").toString());
    store.setStorePathCommitLog(folder.resolve("store/commitlog").toString());
    store.setMappedFileSizeCommitLog(FILE_BYTES);
    store.setMappedFileSizeConsumeQueue(20 * 1000);
    store.setMaxIndexNum(1000);
    store.setMaxHashSlotNum(100);
    store.setHaListenPort(freePort());
    store.setMessageDelayLevel("1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s");
    broker = new BrokerController(config, server, new NettyClientConfig(), store);
    if (!broker.initialize()) throw new IllegalStateException("no broker");
    broker.start();
    broker.getTopicConfigManager().updateTopicConfig(new TopicConfig(RocketOwner.TOPIC,
        2, 2, PermName.PERM_READ | PermName.PERM_WRITE));
    broker.registerBrokerAll(true, false, true);
  }

  private static int freePort() throws java.io.IOException {
    try (java.net.ServerSocket door = new java.net.ServerSocket(0, 1,
        java.net.InetAddress.getLoopbackAddress())) {
      return door.getLocalPort();
    }
  }

  /** One whose second port below is free as well, which the broker takes without being asked. */
  private static int freePair() throws java.io.IOException {
    for (int tries = 0; tries < 100; ++tries) {
      int port = freePort();
      try (java.net.ServerSocket below = new java.net.ServerSocket(port - 2, 1,
          java.net.InetAddress.getLoopbackAddress())) {
        return port;
      } catch (java.net.BindException taken) {
        continue;
      }
    }
    throw new java.io.IOException("no free ports");
  }

  String address() {
    return address;
  }

  /** The keys of the dead letters of a group, as they are stored. */
  List<String> dead(String group) {
    List<String> keys = new ArrayList<>();
    GetMessageResult found =
        broker.getMessageStore().getMessage("reader", "%DLQ%" + group, 0, 0, 32, null);
    if (found == null) return keys;
    for (ByteBuffer each : found.getMessageBufferList()) {
      keys.add(MessageDecoder.decode(each).getKeys());
    }
    found.release();
    return keys;
  }

  /** Its files only: it ends with the process, and would wait for its clients before. */
  @Override
  public void close() {
    delete(folder.toFile());
  }

  private static void delete(File file) {
    File[] inside = file.listFiles();
    if (inside != null) {
      for (File each : inside) delete(each);
    }
    file.delete();
  }
}
