package io.semel.spring;

import io.semel.Semel;
import io.semel.Tokens;

/** Tokens for methods of type TOKEN. */
public final class IssuedTokens {
  private final Tokens tokens;
  private final Settings settings;

  public IssuedTokens(Semel semel, Settings settings) {
    this.settings = settings;
    tokens = semel.tokens(Guard.tokenNamespace(settings), Guard.tokenTerms(settings));
  }

  /** A new token; its call may come for as long as the settings say. */
  public String issue() {
    return tokens.issue(settings.tokenTtlMs());
  }
}
