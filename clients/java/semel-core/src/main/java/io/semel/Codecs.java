package io.semel;

import io.semel.json.Jackson3Codec;
import io.semel.json.JacksonCodec;

/** Finds the JSON library that the application has. */
final class Codecs {
  private Codecs() {}

  static Codec found() {
    try {
      return Jackson2.make();
    } catch (LinkageError none) {
      // Jackson 3, or none.
    }
    try {
      Class<?> mapper = Class.forName("tools.jackson.databind.json.JsonMapper");
      return new Jackson3Codec(mapper.getConstructor().newInstance());
    } catch (ReflectiveOperationException | LinkageError none) {
      return new PlainCodec();
    }
  }

  /** Apart, so that this class loads without Jackson. */
  private static final class Jackson2 {
    static Codec make() {
      return new JacksonCodec(
          new com.fasterxml.jackson.databind.ObjectMapper().findAndRegisterModules());
    }
  }
}
