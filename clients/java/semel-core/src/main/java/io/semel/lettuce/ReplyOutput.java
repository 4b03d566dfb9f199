package io.semel.lettuce;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Any reply: bulk strings as byte[], a map as the list of its names and values in turn. */
final class ReplyOutput extends CommandOutput<byte[], byte[], Object> {
  private static final class Frame {
    final List<Object> parts = new ArrayList<>();
    final int count;

    Frame(int count) {
      this.count = count;
    }
  }

  private final Deque<Frame> open = new ArrayDeque<>();

  ReplyOutput() {
    super(ByteArrayCodec.INSTANCE, null);
  }

  private void add(Object part) {
    if (open.isEmpty()) {
      output = part;
      return;
    }
    open.peek().parts.add(part);
    while (!open.isEmpty() && open.peek().parts.size() >= open.peek().count) {
      Frame full = open.pop();
      if (open.isEmpty()) {
        output = full.parts;
      } else {
        open.peek().parts.add(full.parts);
      }
    }
  }

  @Override
  public void set(ByteBuffer bytes) {
    if (bytes == null) {
      add(null);
      return;
    }
    byte[] copy = new byte[bytes.remaining()];
    bytes.get(copy);
    add(copy);
  }

  @Override
  public void set(long number) {
    add(number);
  }

  @Override
  public void set(double number) {
    add(number);
  }

  @Override
  public void set(boolean flag) {
    add(flag);
  }

  @Override
  public void multi(int count) {
    if (count < 0) {
      add(null);
    } else if (count == 0) {
      add(new ArrayList<>());
    } else {
      open.push(new Frame(count));
    }
  }
}
