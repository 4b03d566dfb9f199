package io.semel.boot;

import io.semel.spring.IssuedTokens;
import java.util.Collections;
import java.util.Map;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * POST to semel.token.endpoint answers {"token": ..}. It is off by default: each token is a record of
 * the node, so the application's own security must decide who may have one.
 */
@RestController
public class TokenController {
  private final IssuedTokens tokens;

  TokenController(IssuedTokens tokens) {
    this.tokens = tokens;
  }

  @PostMapping("${semel.token.endpoint}")
  public Map<String, String> issue() {
    return Collections.singletonMap("token", tokens.issue());
  }
}
