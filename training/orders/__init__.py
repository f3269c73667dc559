"""How the learned judgement of orders to agents is made."""
