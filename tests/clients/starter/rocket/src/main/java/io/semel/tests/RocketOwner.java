package io.semel.tests;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.semel.Consumer;
import io.semel.Options;
import io.semel.PlainCodec;
import io.semel.Semel;
import io.semel.lettuce.LettuceLink;
import io.semel.spring.mq.RocketListener;
import java.time.Duration;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** A consumer of the topic; as a child it is halted in the middle of its first message. */
final class RocketOwner {
  static final String TOPIC = "orders";
  static final String GROUP = "shop";
  static final int ATTEMPTS = 3;

  private RocketOwner() {}

  static Semel semel(int node) {
    return new Semel(new LettuceLink(RedisClient.create(RedisURI.create("127.0.0.1", node))),
        new Options().patience(Duration.ofMillis(300)), new PlainCodec());
  }

  static DefaultMQPushConsumer consumer(String names, Semel semel, RocketListener.Handler handler)
      throws Exception {
    DefaultMQPushConsumer made = new DefaultMQPushConsumer(GROUP);
    made.setNamesrvAddr(names);
    made.setInstanceName("p" + ProcessHandle.current().pid());
    made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    made.setVipChannelEnabled(false);
    made.setConsumeThreadMin(4);
    made.setConsumeThreadMax(4);
    made.setMaxReconsumeTimes(1_000);  // the store decides what is a dead letter
    made.subscribe(TOPIC, "*");
    made.registerMessageListener(new RocketListener(new Consumer(semel, "rocket",
        Duration.ofSeconds(2), Duration.ofDays(1), ATTEMPTS), MessageExt::getKeys, handler));
    made.start();
    return made;
  }

  /** NAMES NODE */
  public static void main(String[] words) throws Exception {
    consumer(words[0], semel(Integer.parseInt(words[1])), message -> {
      Child.say("working");
      Thread.sleep(600_000);
    });
    Child.waitForParent();
    Runtime.getRuntime().halt(9);
  }
}
