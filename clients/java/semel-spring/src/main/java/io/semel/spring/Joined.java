package io.semel.spring;

import io.semel.InvalidKey;
import io.semel.KeyText;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;
import org.springframework.expression.spel.ExpressionState;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.OpPlus;
import org.springframework.expression.spel.ast.SpelNodeImpl;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.standard.SpelExpression;

/**
 * Texts that are joined by `+`. SpEL makes the text `null` of null, so that a call without a value
 * and one with that text would be one; here it is refused. Values are texts as in docs/identity.md.
 */
final class Joined {
  private final ExpressionState state;
  private final String text;

  private Joined(ExpressionState state, String text) {
    this.state = state;
    this.text = text;
  }

  static Object value(Expression expression, EvaluationContext context) {
    if (!(expression instanceof SpelExpression)) return expression.getValue(context);
    SpelNode root = ((SpelExpression) expression).getAST();
    if (!isJoin(root)) return expression.getValue(context);
    ExpressionState state = new ExpressionState(context, context.getRootObject(),
        new SpelParserConfiguration());
    return new Joined(state, expression.getExpressionString()).value(root);
  }

  private static boolean isJoin(SpelNode node) {
    return node instanceof OpPlus && node.getChildCount() == 2;
  }

  private Object value(SpelNode node) {
    if (!isJoin(node)) return ((SpelNodeImpl) node).getValue(state);
    Object left = value(node.getChild(0));
    Object right = value(node.getChild(1));
    if (left instanceof CharSequence || right instanceof CharSequence) {
      return part(node.getChild(0), left) + part(node.getChild(1), right);
    }
    return ((SpelNodeImpl) node).getValue(state);  // a sum
  }

  private String part(SpelNode node, Object value) {
    String part = KeyText.of(value);
    if (part != null) return part;
    throw new InvalidKey("'" + text + "' joins a text with " + node.toStringAST()
        + ", which is null");
  }
}
