package io.semel.spring;

/** What all guarded methods of an application share. */
public final class Settings {
  private String application = "";
  private String tokenHeader = "token";
  private long tokenTtlMs = 300_000;
  private long tokenKeepMs = 3_600_000;
  private boolean anonymous;

  /** First part of all namespaces, so that two applications never share a key by accident. */
  public String application() {
    return application;
  }

  public Settings application(String name) {
    application = name;
    return this;
  }

  public String tokenHeader() {
    return tokenHeader;
  }

  public Settings tokenHeader(String name) {
    tokenHeader = name;
    return this;
  }

  /** How long a token can be used. */
  public long tokenTtlMs() {
    return tokenTtlMs;
  }

  public Settings tokenTtlMs(long ms) {
    tokenTtlMs = ms;
    return this;
  }

  /** How long the result of a used token is kept. */
  public long tokenKeepMs() {
    return tokenKeepMs;
  }

  public Settings tokenKeepMs(long ms) {
    tokenKeepMs = ms;
    return this;
  }

  /** Requests without a user are all of one user. */
  public boolean anonymous() {
    return anonymous;
  }

  public Settings anonymous(boolean value) {
    anonymous = value;
    return this;
  }
}
