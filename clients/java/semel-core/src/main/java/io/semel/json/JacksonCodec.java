package io.semel.json;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.semel.Codec;
import java.lang.reflect.Type;

/**
 * Jackson 2, with the modules that there are. Of the application's settings those that lose a part of
 * a value are not taken over: what is read is what was written.
 */
public final class JacksonCodec implements Codec {
  private final ObjectMapper mapper;
  private final ObjectMapper own;

  public JacksonCodec(ObjectMapper mapper) {
    own = mapper;
    this.mapper = mapper.copy().findAndRegisterModules()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .disable(DeserializationFeature.ADJUST_DATES_TO_CONTEXT_TIME_ZONE)
        .disable(DeserializationFeature.READ_ENUMS_USING_TO_STRING)
        .disable(DeserializationFeature.ACCEPT_EMPTY_STRING_AS_NULL_OBJECT)
        .disable(DeserializationFeature.UNWRAP_ROOT_VALUE)
        .disable(SerializationFeature.WRAP_ROOT_VALUE)
        .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
        .disable(SerializationFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
        .enable(SerializationFeature.WRITE_DATES_WITH_ZONE_ID)
        .disable(SerializationFeature.WRITE_ENUMS_USING_TO_STRING)
        .disable(SerializationFeature.WRITE_ENUMS_USING_INDEX)
        .disable(SerializationFeature.INDENT_OUTPUT)
        .setDefaultPropertyInclusion(JsonInclude.Value.construct(JsonInclude.Include.ALWAYS,
            JsonInclude.Include.ALWAYS))
        .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
  }

  @Override
  public byte[] encode(Object value) throws Exception {
    return mapper.writeValueAsBytes(value);
  }

  /** Of a list alone Jackson does not know that its elements have subtypes. */
  @Override
  public byte[] encode(Object value, Type type) throws Exception {
    JavaType known = mapper.getTypeFactory().constructType(type);
    boolean isGeneric = !(type instanceof Class) && known.getRawClass().isInstance(value);
    return isGeneric ? mapper.writerFor(known).writeValueAsBytes(value)
        : mapper.writeValueAsBytes(value);
  }

  @Override
  public byte[] document(Object value) throws Exception {
    return own.writeValueAsBytes(value);
  }

  @Override
  public Object decode(byte[] bytes, Type type) throws Exception {
    return mapper.readValue(bytes, mapper.getTypeFactory().constructType(type));
  }
}
