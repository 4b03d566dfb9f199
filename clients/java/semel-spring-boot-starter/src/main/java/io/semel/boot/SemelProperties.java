package io.semel.boot;

import io.semel.Options;
import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** semel.*: docs/java.md lists them. */
@ConfigurationProperties("semel")
public class SemelProperties {
  private boolean enabled = true;
  private String application = "";
  private Duration callTimeout = Duration.ofSeconds(1);
  private Duration patience = Duration.ofSeconds(5);
  private Duration recordPatience = Duration.ofSeconds(5);
  private Duration renewFor = Duration.ofHours(1);
  private int waitsMax = 8;
  private int resultBytesMax = 1 << 20;
  private int keyBytesMax = 1_024;
  private boolean bind;
  private boolean changeTerms;
  private Options.WhenUnreachable whenUnreachable = Options.WhenUnreachable.REFUSE;
  private final Token token = new Token();
  private final Param param = new Param();

  /** semel.token.*. */
  public static class Token {
    private String header = "token";
    private String endpoint = "";
    private Duration ttl = Duration.ofMinutes(5);
    private Duration keep = Duration.ofHours(1);

    public String getHeader() {
      return header;
    }

    public void setHeader(String value) {
      header = value;
    }

    public String getEndpoint() {
      return endpoint;
    }

    public void setEndpoint(String value) {
      endpoint = value;
    }

    public Duration getTtl() {
      return ttl;
    }

    public void setTtl(Duration value) {
      ttl = value;
    }

    public Duration getKeep() {
      return keep;
    }

    public void setKeep(Duration value) {
      keep = value;
    }
  }

  /** semel.param.*. */
  public static class Param {
    private boolean anonymous;

    public boolean isAnonymous() {
      return anonymous;
    }

    public void setAnonymous(boolean value) {
      anonymous = value;
    }
  }

  Options options(String owner) {
    return new Options().callTimeout(callTimeout).patience(patience).recordPatience(recordPatience)
        .renewFor(renewFor).waitsMax(waitsMax).resultBytesMax(resultBytesMax)
        .keyBytesMax(keyBytesMax).bind(bind).changeTerms(changeTerms)
        .whenUnreachable(whenUnreachable).owner(owner);
  }

  public boolean isEnabled() {
    return enabled;
  }

  public void setEnabled(boolean value) {
    enabled = value;
  }

  public String getApplication() {
    return application;
  }

  public void setApplication(String value) {
    application = value;
  }

  public Token getToken() {
    return token;
  }

  public Param getParam() {
    return param;
  }

  public Duration getCallTimeout() {
    return callTimeout;
  }

  public void setCallTimeout(Duration value) {
    callTimeout = value;
  }

  public Duration getPatience() {
    return patience;
  }

  public void setPatience(Duration value) {
    patience = value;
  }

  public Duration getRecordPatience() {
    return recordPatience;
  }

  public void setRecordPatience(Duration value) {
    recordPatience = value;
  }

  public Duration getRenewFor() {
    return renewFor;
  }

  public void setRenewFor(Duration value) {
    renewFor = value;
  }

  public int getWaitsMax() {
    return waitsMax;
  }

  public void setWaitsMax(int value) {
    waitsMax = value;
  }

  public int getResultBytesMax() {
    return resultBytesMax;
  }

  public void setResultBytesMax(int value) {
    resultBytesMax = value;
  }

  public int getKeyBytesMax() {
    return keyBytesMax;
  }

  public void setKeyBytesMax(int value) {
    keyBytesMax = value;
  }

  public boolean isBind() {
    return bind;
  }

  public void setBind(boolean value) {
    bind = value;
  }

  public boolean isChangeTerms() {
    return changeTerms;
  }

  public void setChangeTerms(boolean value) {
    changeTerms = value;
  }

  public Options.WhenUnreachable getWhenUnreachable() {
    return whenUnreachable;
  }

  public void setWhenUnreachable(Options.WhenUnreachable value) {
    whenUnreachable = value;
  }
}
