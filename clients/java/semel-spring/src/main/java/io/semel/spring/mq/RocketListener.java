package io.semel.spring.mq;

import io.semel.Consumer;
import io.semel.Verdict;
import java.util.List;
import java.util.function.Function;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A listener of RocketMQ that handles each message once. Of a batch the messages up to the first one
 * that is to come again are acknowledged.
 */
public final class RocketListener implements MessageListenerConcurrently {
  private static final int DEAD_LETTER_LEVEL = -1;

  /** What is done with a message. */
  @FunctionalInterface
  public interface Handler {
    void handle(MessageExt message) throws Exception;
  }

  private final Consumer consumer;
  private final Function<MessageExt, String> id;
  private final Handler handler;

  /** `id` such as MessageExt::getKeys: ids of the broker change when a message is sent twice. */
  public RocketListener(Consumer consumer, Function<MessageExt, String> id, Handler handler) {
    this.consumer = consumer;
    this.id = id;
    this.handler = handler;
  }

  @Override
  public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages,
      ConsumeConcurrentlyContext context) {
    for (int i = 0; i < messages.size(); ++i) {
      MessageExt message = messages.get(i);
      Verdict verdict = consumer.consume(id.apply(message), () -> {
        handler.handle(message);
        return null;
      });
      if (verdict.isAck()) continue;
      context.setAckIndex(i - 1);
      // The level is that of all that are sent back, so a dead letter in front of others is retried
      // until it is alone, or the broker has had enough of it.
      if (verdict.kind() == Verdict.Kind.DEAD_LETTER && i == messages.size() - 1) {
        context.setDelayLevelWhenNextConsume(DEAD_LETTER_LEVEL);
      }
      // With RECONSUME_LATER the client ignores the index and sends back the whole batch.
      return i == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
          : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
  }
}
