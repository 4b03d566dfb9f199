package io.semel.json;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.semel.Codec;
import java.lang.reflect.Type;

/** Jackson 2. Numbers keep their digits also where no type says how to read them. */
public final class JacksonCodec implements Codec {
  private final ObjectMapper mapper;

  public JacksonCodec(ObjectMapper mapper) {
    this.mapper = mapper.copy().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
  }

  @Override
  public byte[] encode(Object value) throws Exception {
    return mapper.writeValueAsBytes(value);
  }

  @Override
  public Object decode(byte[] bytes, Type type) throws Exception {
    return mapper.readValue(bytes, mapper.getTypeFactory().constructType(type));
  }
}
